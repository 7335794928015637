import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;

/** Topics are made, grow, and sometimes go, to come again under another id. */
public final class Topics implements Act {
    @Override
    public void perform(Stage stage) throws Exception {
        Map<String, Integer> there = stage.topics();
        String topic = stage.any(Stage.TOPICS);
        if (!there.containsKey(topic)) {
            NewTopic made = new NewTopic(topic, 1 + stage.random.nextInt(4), (short) 1);
            stage.said(this, "makes " + topic);
            stage.admin.createTopics(List.of(made)).all().get(10, TimeUnit.SECONDS);
        } else if (there.size() > 2 && stage.onceIn(5)) {
            stage.said(this, "deletes " + topic);
            stage.admin.deleteTopics(List.of(topic)).all().get(10, TimeUnit.SECONDS);
        } else if (there.get(topic) < 6 && stage.onceIn(3)) {
            NewPartitions grown = NewPartitions.increaseTo(there.get(topic) + 1);
            stage.said(this, "grows " + topic);
            stage.admin.createPartitions(Map.of(topic, grown)).all().get(10, TimeUnit.SECONDS);
        }
    }
}
