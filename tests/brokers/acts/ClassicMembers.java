import java.util.List;
import java.util.Map;

/** Members of the classic protocol, with every assignor of the clients. */
public final class ClassicMembers extends Members {
    private static final String PACKAGE = "org.apache.kafka.clients.consumer.";
    private static final List<String> ASSIGNORS = List.of(
        "RangeAssignor", "RoundRobinAssignor", "StickyAssignor", "CooperativeStickyAssignor");

    @Override
    Map<String, Object> settings(Stage stage, String clientId) {
        String group = stage.group(Stage.CLASSIC, Stage.CONSUMER);
        // A group's members need an assignor in common.
        String assignors = PACKAGE + ASSIGNORS.get(Math.floorMod(group.hashCode() >> 3, 4));
        if (stage.onceIn(3)) {
            assignors += "," + PACKAGE + stage.any(ASSIGNORS);
        }
        return stage.readerSettings(
            "group.id", group,
            "client.id", clientId,
            "group.protocol", "classic",
            "group.instance.id", instance(stage),
            "client.rack", stage.anyOf("", "", "rack-a", "rack-b"),
            "partition.assignment.strategy", assignors,
            "session.timeout.ms", stage.anyOf(20000, 30000),
            "heartbeat.interval.ms", 1000,
            "max.poll.interval.ms", stage.anyOf(120000, 300000),
            "enable.auto.commit", false,
            "auto.offset.reset", "earliest");
    }
}
