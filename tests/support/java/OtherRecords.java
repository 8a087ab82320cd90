// Records that minibroker never writes, written and shown by Apache Kafka: java -cp 'classes:jars/*' OtherRecords
//
// Every line on stdin is a command, its words separated by tabs:
//
//   framed CLASS VERSION JSON                   a record with a frame in front, as metadata has it
//   keyed CLASS VERSION JSON CLASS KIND JSON    a record of a coordinator: value (or null), then key
//   control TYPE CLASS JSON                     a control record
//   dump WORD...                                DumpLogSegments with these arguments
//
// Records are answered by a line "key value" in hexadecimal, - for none; a dump by its output and a line "done".

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.utils.ByteUtils;

public class OtherRecords {
    public static void main(String[] arguments) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t");
            if (words[0].equals("dump")) {
                org.apache.kafka.tools.DumpLogSegments.main(Arrays.copyOfRange(words, 1, words.length));
                System.out.println("done");
            } else {
                System.out.println(hexOf(words));
            }
        }
    }

    static String hexOf(String[] words) throws Exception {
        if (words[0].equals("control")) {
            byte[] prefixed = MessageUtil.toVersionPrefixedBytes((short) 0, messageOf(words[2], (short) 0, words[3]));
            return "0000" + String.format("%04x", Short.parseShort(words[1])) + " " + hex(prefixed, 2);
        }
        short version = Short.parseShort(words[2]);
        byte[] prefixed = words[3].equals("null") ? null : MessageUtil.toVersionPrefixedBytes(version, messageOf(words[1], version, words[3]));
        if (words[0].equals("keyed")) {
            byte[] key = MessageUtil.toVersionPrefixedBytes((short) 0, messageOf(words[4], (short) 0, words[6]));
            String kind = String.format("%04x", Short.parseShort(words[5]));
            return kind + hex(key, 2) + " " + (prefixed == null ? "-" : hex(prefixed, 0));
        }
        ByteBuffer frame = ByteBuffer.allocate(16);
        ByteUtils.writeUnsignedVarint(1, frame);
        ByteUtils.writeUnsignedVarint(((ApiMessage) messageOf(words[1], version, words[3])).apiKey(), frame);
        ByteUtils.writeUnsignedVarint(version, frame);
        byte[] head = new byte[frame.flip().remaining()];
        frame.get(head);
        return "- " + hex(head, 0) + hex(prefixed, 2);
    }

    static Message messageOf(String name, short version, String json) throws Exception {
        JsonNode node = new ObjectMapper().readTree(json);
        return (Message) Class.forName(name + "JsonConverter").getMethod("read", JsonNode.class, short.class).invoke(null, node, version);
    }

    static String hex(byte[] data, int from) {
        StringBuilder found = new StringBuilder();
        for (int at = from; at < data.length; at++) {
            found.append(String.format("%02x", data[at]));
        }
        return found.toString();
    }
}
