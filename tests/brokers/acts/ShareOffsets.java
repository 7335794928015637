import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.TopicPartition;

/** Start offsets of share groups are altered and deleted; groups with members refuse. */
public final class ShareOffsets implements Act {
    @Override
    public void perform(Stage stage) throws Exception {
        String group = stage.any(Stage.SHARE);
        String topic = stage.any(Stage.TOPICS);
        if (stage.onceIn(2)) {
            stage.said(this, "alters offsets of " + group + " in " + topic);
            long offset = stage.random.nextInt(40);
            stage.admin.alterShareGroupOffsets(group, Map.of(new TopicPartition(topic, 0), offset))
                .all().get(10, TimeUnit.SECONDS);
        } else {
            stage.said(this, "deletes offsets of " + group + " in " + topic);
            stage.admin.deleteShareGroupOffsets(group, Set.of(topic))
                .all().get(10, TimeUnit.SECONDS);
        }
    }
}
