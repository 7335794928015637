import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** Offsets committed by who is no member: a consumer that assigned itself, or an operator. */
public final class SimpleCommits implements Act {
    @Override
    public void perform(Stage stage) throws Exception {
        String group = stage.onceIn(4) ? stage.any(Stage.CLASSIC) : stage.any(Stage.SIMPLE);
        Map<TopicPartition, OffsetAndMetadata> offsets = offsets(stage);
        stage.said(this, "commits " + group + " " + offsets.keySet());
        if (stage.onceIn(2)) {
            stage.admin.alterConsumerGroupOffsets(group, offsets).all().get(10, TimeUnit.SECONDS);
            return;
        }
        Map<String, Object> settings =
            stage.readerSettings("group.id", group, "enable.auto.commit", false);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(offsets.keySet());
            consumer.commitSync(offsets);
        }
    }

    /** Offsets of a few partitions; few are chosen from, so that commits meet. */
    static Map<TopicPartition, OffsetAndMetadata> offsets(Stage stage) throws Exception {
        Map<String, Integer> topics = stage.topics();
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (int each = stage.random.nextInt(4); each >= 0; each--) {
            Optional<Integer> epoch =
                stage.onceIn(2) ? Optional.empty() : Optional.of(stage.random.nextInt(5));
            String topic = stage.any(List.copyOf(topics.keySet()));
            offsets.put(
                new TopicPartition(topic, stage.random.nextInt(Math.min(2, topics.get(topic)))),
                new OffsetAndMetadata(stage.random.nextInt(1000), epoch, stage.text()));
        }
        return offsets;
    }
}
