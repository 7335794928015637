import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** The members of one kind that are on stage: some come, some go. */
abstract class Members implements Act {
    private static final int MOST = 4;
    private static int number;

    private final List<Member> present = new ArrayList<>();

    /** The settings of another member. */
    abstract Map<String, Object> settings(Stage stage, String clientId);

    /** What it subscribes to. */
    Consumer<KafkaConsumer<byte[], byte[]>> subscription(Stage stage) {
        List<String> topics = List.copyOf(stage.several(Stage.TOPICS));
        return consumer -> consumer.subscribe(topics);
    }

    @Override
    public void perform(Stage stage) {
        present.removeIf(each -> !each.isAlive());
        if (present.size() < MOST && !(present.size() > 2 && stage.onceIn(3))) {
            Map<String, Object> settings = settings(stage, "member-" + number++);
            Member member = new Member(stage, settings, subscription(stage));
            member.start();
            present.add(member);
            stage.said(this, "joins: " + settings.get("group.id") + ", " + settings.get("client.id")
                + ", " + settings.get("group.instance.id"));
        } else {
            Member member = stage.any(present);
            member.leaving = true;
            stage.said(this, "one leaves");
        }
    }

    /** The name of a static member, seldom given; null otherwise. */
    static String instance(Stage stage) {
        return stage.onceIn(4) ? "static-" + stage.random.nextInt(2) : null;
    }
}
