import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.ConfigResource;

/** Members of share groups: they accept, release and reject, sometimes too late. */
public final class ShareMembers implements Act {
    private static final int MOST = 3;
    private static final long LATE_MS = 2500;
    private static int number;

    private final List<Worker> present = new ArrayList<>();

    @Override
    public void perform(Stage stage) throws Exception {
        present.removeIf(each -> !each.isAlive());
        if (present.size() == MOST || present.size() > 1 && stage.onceIn(3)) {
            stage.any(present).leaving = true;
            stage.said(this, "one leaves");
            return;
        }
        String group = stage.any(Stage.SHARE);
        stage.admin.incrementalAlterConfigs(Map.of(
            new ConfigResource(ConfigResource.Type.GROUP, group),
            List.of(new AlterConfigOp(
                new ConfigEntry("share.auto.offset.reset", "earliest"),
                AlterConfigOp.OpType.SET)))).all().get(10, TimeUnit.SECONDS);
        Worker worker = new Worker(stage, group, stage.several(Stage.TOPICS));
        worker.start();
        present.add(worker);
        stage.said(this, "joins: " + group);
    }

    private static final class Worker extends Thread {
        private final Stage stage;
        private final List<String> topics;
        private final Map<String, Object> settings;
        private final Random random;
        volatile boolean leaving;

        Worker(Stage stage, String group, List<String> topics) {
            this.stage = stage;
            this.topics = List.copyOf(topics);
            this.random = new Random(stage.random.nextLong());
            this.settings = stage.readerSettings(
                "group.id", group,
                "client.id", "worker-" + number++,
                "max.poll.records", 10,
                "share.acknowledgement.mode", "explicit");
            setDaemon(true);
        }

        @Override
        public void run() {
            try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings)) {
                consumer.subscribe(topics);
                while (!leaving) {
                    if (stage.holding) {
                        Thread.sleep(200); // heartbeats go on behind
                    } else {
                        step(consumer);
                    }
                }
            } catch (Exception gone) {
                stage.said(this, settings.get("client.id") + " gone: " + gone);
            }
        }

        private void step(KafkaShareConsumer<byte[], byte[]> consumer) throws Exception {
            try {
                Iterable<ConsumerRecord<byte[], byte[]>> records =
                    consumer.poll(Duration.ofMillis(300));
                if (random.nextInt(12) == 0) {
                    Thread.sleep(LATE_MS);
                }
                int usual = random.nextInt(10);
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    int drawn = random.nextInt(4) == 0 ? random.nextInt(10) : usual;
                    consumer.acknowledge(record,
                        drawn < 6 ? AcknowledgeType.ACCEPT
                        : drawn < 9 ? AcknowledgeType.RELEASE : AcknowledgeType.REJECT);
                }
                consumer.commitSync();
            } catch (KafkaException | IllegalStateException refused) {
                stage.said(this, settings.get("client.id") + " refused: " + refused);
                Thread.sleep(500);
            }
        }
    }
}
