import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;

/**
 * Puts questions to a broker: each line of the input {"api", "version" or null, "request"} is
 * answered by a line of output, the response as JSON or {"failed": why}. Argument: host:port.
 */
public final class Ask {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader input =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Wire wire = null;
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            try {
                JsonNode question = json.readTree(line);
                wire = wire == null ? new Wire(arguments[0]) : wire;
                JsonNode version = question.get("version");
                output.println(json.writeValueAsString(wire.ask(
                    question.get("api").textValue(),
                    version == null || version.isNull() ? null : version.shortValue(),
                    question.get("request"))));
            } catch (Exception refused) {
                Throwable cause =
                    refused instanceof InvocationTargetException ? refused.getCause() : refused;
                if (wire != null) {
                    wire.close(); // what is left in it would answer another question
                    wire = null;
                }
                output.println(json.createObjectNode().put("failed", cause.toString()));
            }
        }
    }
}
