import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.TopicPartition;

/** Groups and offsets are deleted; groups with members refuse. */
public final class Deletions implements Act {
    @Override
    public void perform(Stage stage) throws Exception {
        List<String> groups = stage.anyOf(
            Stage.CLASSIC, Stage.CONSUMER, Stage.SIMPLE, Stage.SIMPLE, Stage.SHARE);
        String group = stage.any(groups);
        if (stage.onceIn(3)) {
            stage.said(this, "deletes group " + group);
            stage.admin.deleteConsumerGroups(List.of(group)).all().get(10, TimeUnit.SECONDS);
        } else if (groups != Stage.SHARE) {
            Set<TopicPartition> gone = SimpleCommits.offsets(stage).keySet();
            stage.said(this, "deletes offsets of " + group + " " + gone);
            stage.admin.deleteConsumerGroupOffsets(group, gone).all().get(10, TimeUnit.SECONDS);
        }
    }
}
