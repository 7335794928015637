import java.util.function.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;

/** Members of the consumer protocol whose topics the broker finds by a regular expression. */
public final class PatternMembers extends ConsumerMembers {
    @Override
    Consumer<KafkaConsumer<byte[], byte[]>> subscription(Stage stage) {
        String pattern = stage.anyOf("order.*", ".*parcels", "p.+s|returns", ".*s", "nothing");
        return consumer -> consumer.subscribe(new SubscriptionPattern(pattern));
    }
}
