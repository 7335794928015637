import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** What all acts share: the broker, its topics, names to choose from, and chance. */
public final class Stage {
    static final List<String> TOPICS =
        List.of("orders", "order.lines", "payments", "parcels", "returns", "late_parcels");
    static final List<String> CLASSIC = List.of("clerks", "couriers", "kiosks", "caf\u00e9 \u2615");
    static final List<String> CONSUMER = List.of("pickers", "packers", "drivers", "a \"b\", c=d|e");
    static final List<String> SIMPLE = List.of("copy", "backfill", "audit ]}", "mirror::1");
    static final List<String> SHARE = List.of("robots", "printers", "scales");
    private static final List<String> TEXTS = List.of(
        "", "", "", "checked", "caf\u00e9 \u2615 \ud83d\udce6", "quote\" comma, bracket]} colon::",
        "line\nbreak\tand tab", "null\0byte", "{\"version\":\"3\"}", "x".repeat(3000));

    final String bootstrap;
    final String release;
    final Random random;
    final Admin admin;
    volatile boolean holding;

    Stage(String bootstrap, long seed, String release) {
        this.bootstrap = bootstrap;
        this.release = release;
        this.random = new Random(seed);
        this.admin = Admin.create(settings());
    }

    /** Makes the topics that are not there. */
    void open() throws Exception {
        Set<String> there = topics().keySet();
        List<NewTopic> missing = TOPICS.stream().filter(each -> !there.contains(each))
            .map(each -> new NewTopic(each, 1 + random.nextInt(4), (short) 1)).toList();
        admin.createTopics(missing).all().get(30, TimeUnit.SECONDS);
    }

    /** One of them; null where there is none. */
    <T> T any(List<T> some) {
        return some.isEmpty() ? null : some.get(random.nextInt(some.size()));
    }

    @SafeVarargs
    final <T> T anyOf(T... some) {
        return some[random.nextInt(some.length)];
    }

    /** One in so many times. */
    boolean onceIn(int times) {
        return random.nextInt(times) == 0;
    }

    /** At least one of them, in any order. */
    <T> List<T> several(List<T> some) {
        List<T> shuffled = new ArrayList<>(some);
        Collections.shuffle(shuffled, random);
        return shuffled.subList(0, Math.min(shuffled.size(), 1 + random.nextInt(3)));
    }

    /** A group for a member of one kind: mostly one of its kind, sometimes one of another. */
    String group(List<String> own, List<String> others) {
        return any(onceIn(5) ? others : own);
    }

    /** What a commit may carry. */
    String text() {
        return any(TEXTS);
    }

    /** The topics there are, with their numbers of partitions. */
    Map<String, Integer> topics() throws Exception {
        List<String> there = new ArrayList<>(admin.listTopics().names().get(10, TimeUnit.SECONDS));
        there.retainAll(TOPICS);
        Map<String, Integer> sizes = new HashMap<>();
        admin.describeTopics(there).allTopicNames().get(10, TimeUnit.SECONDS)
            .forEach((name, told) -> sizes.put(name, told.partitions().size()));
        return sizes;
    }

    /** Settings of a client; names and values follow one another. */
    Map<String, Object> settings(Object... more) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("default.api.timeout.ms", 8000);
        settings.put("request.timeout.ms", 5000);
        settings.put("metadata.max.age.ms", 3000);
        for (int each = 0; each < more.length; each += 2) {
            settings.put((String) more[each], more[each + 1]);
        }
        settings.values().removeAll(Collections.singleton(null));
        return settings;
    }

    Map<String, Object> readerSettings(Object... more) {
        Map<String, Object> settings = settings(more);
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        return settings;
    }

    Map<String, Object> writerSettings(Object... more) {
        Map<String, Object> settings = settings(more);
        settings.remove("default.api.timeout.ms");
        settings.put("max.block.ms", 5000);
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        return settings;
    }

    /** Whether the release is this one or newer. */
    boolean atLeast(int major, int minor) {
        int[] parts = Arrays.stream(release.split("\\.")).mapToInt(Integer::parseInt).toArray();
        return parts[0] > major || parts[0] == major && parts[1] >= minor;
    }

    void said(Object who, String what) {
        StringBuilder quoted = new StringBuilder();
        for (char each : what.toCharArray()) {
            boolean plain = each >= ' ' && each != '"' && each != '\\' && each < 0x7f;
            quoted.append(plain ? String.valueOf(each) : String.format("\\u%04x", (int) each));
        }
        System.out.println("{\"at\": " + System.currentTimeMillis() + ", \"act\": \""
            + who.getClass().getSimpleName() + "\", \"text\": \"" + quoted + "\"}");
    }
}
