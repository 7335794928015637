import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Records come into topics. */
public final class Production implements Act {
    private KafkaProducer<byte[], byte[]> producer;

    @Override
    public void perform(Stage stage) throws Exception {
        if (producer == null) {
            producer = new KafkaProducer<>(stage.writerSettings("linger.ms", 5));
        }
        Map<String, Integer> there = stage.topics();
        String topic = stage.any(Stage.TOPICS);
        if (there.containsKey(topic)) {
            for (int each = stage.random.nextInt(60); each >= 0; each--) {
                int partition = stage.random.nextInt(there.get(topic));
                producer.send(new ProducerRecord<>(topic, partition, null, new byte[20]));
            }
            producer.flush();
        }
    }
}
