import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Transactions that commit offsets: ended either way, left open, timed out, fenced. */
public final class Transactions implements Act {
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private final Set<String> open = new HashSet<>();

    @Override
    public void perform(Stage stage) throws Exception {
        String id = "writer-" + stage.random.nextInt(8);
        try {
            if (!producers.containsKey(id)) {
                producers.put(id, producer(stage, id));
            }
            KafkaProducer<byte[], byte[]> producer = producers.get(id);
            if (open.add(id)) {
                producer.beginTransaction();
            }
            if (stage.onceIn(2)) {
                producer.send(new ProducerRecord<>(stage.any(Stage.TOPICS), 0, null, new byte[10]));
            }
            for (String group : stage.several(
                    stage.onceIn(3) ? Stage.CLASSIC : stage.onceIn(3) ? Stage.CONSUMER : Stage.SIMPLE)) {
                producer.sendOffsetsToTransaction(
                    SimpleCommits.offsets(stage), new ConsumerGroupMetadata(group));
            }
            end(stage, id, stage.random.nextInt(3));
        } catch (Exception refused) {
            open.remove(id);
            if (producers.containsKey(id)) {
                producers.remove(id).close(Duration.ZERO);
            }
            throw refused;
        }
    }

    private void end(Stage stage, String id, int how) {
        if (how == 0) {
            stage.said(this, id + " stays open");
            return;
        }
        open.remove(id);
        if (how == 1) {
            stage.said(this, id + " aborts");
            producers.get(id).abortTransaction();
        } else {
            stage.said(this, id + " commits");
            producers.get(id).commitTransaction();
        }
    }

    private static KafkaProducer<byte[], byte[]> producer(Stage stage, String id) {
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(stage.writerSettings(
            "transactional.id", id,
            "delivery.timeout.ms", 5500,
            "transaction.timeout.ms", stage.anyOf(6000, 600000)));
        producer.initTransactions();
        return producer;
    }
}
