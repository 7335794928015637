import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/** A member of a classic or consumer group: reads, commits, goes back, until it is told to leave. */
final class Member extends Thread {
    private static final int MOST_FAILURES = 5;

    private final Stage stage;
    private final Map<String, Object> settings;
    private final Consumer<KafkaConsumer<byte[], byte[]>> subscribe;
    private final Random random;
    volatile boolean leaving;

    Member(
            Stage stage, Map<String, Object> settings,
            Consumer<KafkaConsumer<byte[], byte[]>> subscribe) {
        this.stage = stage;
        this.settings = settings;
        this.subscribe = subscribe;
        this.random = new Random(stage.random.nextLong());
        setDaemon(true);
    }

    @Override
    public void run() {
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            subscribe.accept(consumer);
            int failures = 0;
            while (!leaving && failures < MOST_FAILURES) {
                try {
                    step(consumer);
                    failures = 0;
                } catch (KafkaException | IllegalStateException refused) {
                    stage.said(this, settings.get("client.id") + " refused: " + refused);
                    failures += stage.holding ? 0 : 1;
                }
            }
        } catch (Exception gone) {
            stage.said(this, settings.get("client.id") + " gone: " + gone);
        }
    }

    private void step(KafkaConsumer<byte[], byte[]> consumer) {
        if (stage.holding) {
            consumer.pause(consumer.assignment());
        }
        consumer.poll(Duration.ofMillis(100 + random.nextInt(200)));
        if (stage.holding || consumer.assignment().isEmpty() || random.nextInt(3) > 0) {
            return;
        }
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (TopicPartition each : consumer.assignment()) {
            if (random.nextInt(3) > 0) {
                long position = consumer.position(each);
                long offset = random.nextInt(8) == 0 ? position / 2 : position;
                Optional<Integer> epoch =
                    random.nextInt(3) == 0 ? Optional.of(random.nextInt(4)) : Optional.empty();
                String text = random.nextInt(4) == 0 ? stage.text() : "";
                offsets.put(each, new OffsetAndMetadata(offset, epoch, text));
            }
        }
        consumer.commitSync(offsets);
    }
}
