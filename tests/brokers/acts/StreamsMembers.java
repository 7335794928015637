import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/** Members of streams groups (KIP-1071): one copies, one counts, one copies exactly once. */
public final class StreamsMembers implements Act {
    private static final List<String> APPLICATIONS = List.of("copier", "counter", "exact-copier");
    private static final int MOST = 2;

    private final List<KafkaStreams> present = new ArrayList<>();

    @Override
    public void perform(Stage stage) throws Exception {
        if (present.size() == MOST) {
            if (stage.onceIn(2)) {
                stage.said(this, "one leaves");
                present.remove(stage.random.nextInt(MOST)).close(Duration.ofSeconds(5));
            }
            return;
        }
        String application = stage.any(APPLICATIONS);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<byte[], byte[]> read = builder.stream(List.of("orders", "payments"));
        if (application.equals("counter")) {
            read.groupBy((key, value) -> value)
                .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")));
        } else {
            read.foreach((key, value) -> { });
        }
        Properties settings = new Properties();
        settings.putAll(stage.settings(
            "application.id", application,
            "group.protocol", "streams",
            "processing.guarantee", application.startsWith("exact") ? "exactly_once_v2" : null,
            "commit.interval.ms", 700,
            "auto.offset.reset", "earliest",
            "replication.factor", 1,
            "default.key.serde", Serdes.ByteArray().getClass().getName(),
            "default.value.serde", Serdes.ByteArray().getClass().getName(),
            "state.dir", Files.createTempDirectory("streams").toString()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        present.add(streams);
        stage.said(this, "joins: " + application);
    }
}
