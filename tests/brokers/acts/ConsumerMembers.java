import java.util.Map;

/** Members of the consumer protocol (KIP-848). */
public class ConsumerMembers extends Members {
    @Override
    Map<String, Object> settings(Stage stage, String clientId) {
        String group = stage.group(Stage.CONSUMER, Stage.CLASSIC);
        return stage.readerSettings(
            "group.id", group,
            "client.id", clientId,
            "group.protocol", "consumer",
            "group.instance.id", instance(stage),
            "group.remote.assignor", stage.anyOf(null, null, "uniform", "range"),
            "client.rack", stage.anyOf("", "", "rack-a"),
            "max.poll.interval.ms", stage.anyOf(120000, 300000),
            "enable.auto.commit", false,
            "auto.offset.reset", "earliest");
    }
}
