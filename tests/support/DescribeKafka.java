import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

/**
 * Prints, as JSON, what the classes of a Kafka release know about messages whose schema files its
 * jars do not hold: the records of the metadata log and the user data of the sticky assignors.
 * Run as a single source file with kafka-metadata, kafka-clients and slf4j-api on the class path.
 */
public class DescribeKafka {
    public static void main(String[] arguments) throws Exception {
        List<String> records = new ArrayList<>();
        for (MetadataRecordType type : MetadataRecordType.values()) {
            Object written = type.newMetadataRecord();
            Schema[] schemas = (Schema[]) written.getClass().getField("SCHEMAS").get(null);
            Map<Integer, Schema> versions = new TreeMap<>();
            for (int v = type.lowestSupportedVersion(); v <= type.highestSupportedVersion(); v++) {
                versions.put(v, schemas[v]);
            }
            records.add(message(written.getClass().getSimpleName(), type.id(), versions, written));
        }
        String assignors = "org.apache.kafka.clients.consumer.";
        Map<Integer, Schema> sticky = new TreeMap<>();
        sticky.put(0, constant(assignors + "StickyAssignor", "STICKY_ASSIGNOR_USER_DATA_V0"));
        sticky.put(1, constant(assignors + "StickyAssignor", "STICKY_ASSIGNOR_USER_DATA_V1"));
        records.add(message("sticky_user_data", -1, sticky, null));
        Map<Integer, Schema> cooperative = new TreeMap<>();
        cooperative.put(0, constant(
            assignors + "CooperativeStickyAssignor", "COOPERATIVE_STICKY_ASSIGNOR_USER_DATA_V0"));
        records.add(message("cooperative_sticky_user_data", -1, cooperative, null));
        System.out.println("[" + String.join(",\n", records) + "]");
    }

    private static Schema constant(String className, String name) throws Exception {
        Field field = Class.forName(className).getDeclaredField(name);
        field.setAccessible(true);
        return (Schema) field.get(null);
    }

    private static String message(String name, int id, Map<Integer, Schema> versions, Object unwritten)
            throws Exception {
        List<String> parts = new ArrayList<>();
        for (Map.Entry<Integer, Schema> each : versions.entrySet()) {
            parts.add(quoted("" + each.getKey()) + ": " + fields(each.getValue(), unwritten));
        }
        return "{\"name\": " + quoted(name) + ", \"id\": " + id
            + ", \"versions\": {" + String.join(", ", parts) + "}}";
    }

    /** A schema's fields; defaults are those that a fresh object of its class holds. */
    private static String fields(Schema schema, Object unwritten) throws Exception {
        List<String> result = new ArrayList<>();
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields) {
                for (Map.Entry<Integer, org.apache.kafka.common.protocol.types.Field> each
                        : tagged(bound.def.type).entrySet()) {
                    result.add(field(
                        each.getValue().name, each.getValue().type, each.getKey(), unwritten));
                }
                result.add("{\"section\": true}");
            } else {
                result.add(field(bound.def.name, bound.def.type, null, unwritten));
            }
        }
        return "[" + String.join(", ", result) + "]";
    }

    /** By reflection, since releases before 4.0 keep the map to themselves. */
    @SuppressWarnings("unchecked")
    private static Map<Integer, org.apache.kafka.common.protocol.types.Field> tagged(Type section)
            throws Exception {
        Field fields = TaggedFields.class.getDeclaredField("fields");
        fields.setAccessible(true);
        return new TreeMap<>(
            (Map<Integer, org.apache.kafka.common.protocol.types.Field>) fields.get(section));
    }

    private static String field(String name, Type type, Integer tag, Object unwritten)
            throws Exception {
        boolean array = type.isArray();
        Type element = array ? type.arrayElementType().get() : type;
        String fields = "[]";
        if (element instanceof Schema) {
            fields = fields((Schema) element, fresh((Schema) element, unwritten));
        }
        Field member = member(name, unwritten);
        return "{\"name\": " + quoted(member == null ? name : member.getName())
            + ", \"type\": " + quoted(element instanceof Schema ? "struct" : element.toString())
            + ", \"array\": " + array
            + ", \"nullable\": " + type.isNullable()
            + ", \"tag\": " + tag
            + (member == null ? "" : ", \"default\": " + value(member, unwritten))
            + ", \"fields\": " + fields + "}";
    }

    /** Schemas name fields in snake_case; the class's own members have the names we look for. */
    private static Field member(String name, Object unwritten) {
        if (unwritten == null) {
            return null;
        }
        for (Field each : unwritten.getClass().getDeclaredFields()) {
            if (each.getName().equalsIgnoreCase(name.replace("_", ""))) {
                return each;
            }
        }
        throw new IllegalStateException("no member for " + name + " in " + unwritten.getClass());
    }

    private static String value(Field member, Object unwritten) throws Exception {
        Method reader = unwritten.getClass().getMethod(member.getName());
        Object value = reader.invoke(unwritten);
        if (value == null || value instanceof Number || value instanceof Boolean) {
            return String.valueOf(value);
        }
        return value instanceof Collection ? "\"empty\"" : quoted(value.toString());
    }

    /** An object of the nested class that has this schema. */
    private static Object fresh(Schema schema, Object unwritten) throws Exception {
        if (unwritten == null) {
            return null;
        }
        for (Class<?> nested : unwritten.getClass().getDeclaredClasses()) {
            for (Field each : nested.getFields()) {
                if (each.getType() == Schema.class && each.get(null) == schema) {
                    return nested.getConstructor().newInstance();
                }
            }
        }
        throw new IllegalStateException("no class for " + schema + " in " + unwritten.getClass());
    }

    private static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }
}
