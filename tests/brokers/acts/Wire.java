import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** A connection to a broker that takes requests and gives responses of any kind as JSON. */
final class Wire implements AutoCloseable {
    private static final int MILLISECONDS = 15000;

    private final Socket socket;
    private final Map<Integer, Short> newest = new HashMap<>();
    private int correlation;

    Wire(String bootstrap) throws Exception {
        String[] parts = bootstrap.split(":");
        socket = new Socket(parts[0], Integer.parseInt(parts[1]));
        socket.setSoTimeout(MILLISECONDS);
        for (JsonNode each : ask("ApiVersions", (short) 0, null).get("apiKeys")) {
            newest.put(each.get("apiKey").intValue(), each.get("maxVersion").shortValue());
        }
    }

    /**
     * Sends a request and returns its response.
     *
     * @param name of the api, as in the schemas: "ListGroups"
     * @param version null for the newest that both sides speak
     * @param request its fields; those left out, on the first level, have their defaults
     */
    JsonNode ask(String name, Short version, JsonNode request) throws Exception {
        ApiMessageType type = type(name);
        if (version == null) {
            if (!newest.containsKey((int) type.apiKey())) {
                throw new IOException("the broker knows no " + name);
            }
            int known = newest.get((int) type.apiKey());
            version = (short) Math.min(known, type.highestSupportedVersion(true));
        }
        ApiMessage asked = type.newRequest();
        Class<?> converter = converter(asked);
        ObjectNode fields = (ObjectNode) converter
            .getMethod("write", asked.getClass(), short.class).invoke(null, asked, version);
        if (request != null) {
            fields.setAll((ObjectNode) request);
        }
        asked = (ApiMessage) converter
            .getMethod("read", JsonNode.class, short.class).invoke(null, fields, version);
        ApiMessage answered = exchange(type, version, asked);
        return (JsonNode) converter(answered)
            .getMethod("write", answered.getClass(), short.class).invoke(null, answered, version);
    }

    private ApiMessage exchange(ApiMessageType type, short version, ApiMessage asked)
            throws IOException {
        RequestHeaderData header = new RequestHeaderData()
            .setRequestApiKey(type.apiKey()).setRequestApiVersion(version)
            .setCorrelationId(correlation++).setClientId("asker");
        short headerVersion = type.requestHeaderVersion(version);
        ObjectSerializationCache cache = new ObjectSerializationCache();
        int size = header.size(cache, headerVersion) + asked.size(cache, version);
        ByteBuffer sent = ByteBuffer.allocate(4 + size);
        sent.putInt(size);
        header.write(new ByteBufferAccessor(sent), cache, headerVersion);
        asked.write(new ByteBufferAccessor(sent), cache, version);
        socket.getOutputStream().write(sent.array());
        DataInputStream input = new DataInputStream(socket.getInputStream());
        byte[] bytes = new byte[input.readInt()];
        input.readFully(bytes);
        ByteBufferAccessor received = new ByteBufferAccessor(ByteBuffer.wrap(bytes));
        new ResponseHeaderData(received, type.responseHeaderVersion(version));
        ApiMessage answered = type.newResponse();
        answered.read(received, version);
        return answered;
    }

    private static ApiMessageType type(String name) {
        for (ApiMessageType each : ApiMessageType.values()) {
            if (each.name.equals(name)) {
                return each;
            }
        }
        throw new IllegalArgumentException("no api of the name " + name);
    }

    private static Class<?> converter(ApiMessage message) throws ClassNotFoundException {
        return Class.forName(message.getClass().getName() + "JsonConverter");
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
