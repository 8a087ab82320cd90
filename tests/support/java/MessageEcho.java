import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.nio.ByteBuffer;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Lets Apache Kafka's own message classes read bytes and write them again.
 *
 * Standard input: for each message its class name (UTF), version (int16), size (int32) and bytes; an
 * empty class name ends it. Standard output, for each: int32 size and bytes as Kafka writes them, or
 * -1 and a text when Kafka refuses, or -2 when it has no such class or version.
 */
public final class MessageEcho {
    public static void main(String[] arguments) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        for (String name = in.readUTF(); !name.isEmpty(); name = in.readUTF()) {
            short version = in.readShort();
            byte[] bytes = new byte[in.readInt()];
            in.readFully(bytes);
            try {
                answer(out, name, version, bytes);
            } catch (ClassNotFoundException missing) {
                out.writeInt(-2);
            } catch (RuntimeException refusal) {
                out.writeInt(-1);
                out.writeUTF(refusal.toString());
            }
        }
        out.flush();
    }

    private static void answer(DataOutputStream out, String name, short version, byte[] bytes)
            throws Exception {
        Message message = (Message) Class.forName(name).getDeclaredConstructor().newInstance();
        if (version < message.lowestSupportedVersion() || version > message.highestSupportedVersion()) {
            out.writeInt(-2);
            return;
        }
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        message.read(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException(buffer.remaining() + " bytes are left over");
        }
        ObjectSerializationCache cache = new ObjectSerializationCache();
        byte[] written = new byte[message.size(cache, version)];
        message.write(new ByteBufferAccessor(ByteBuffer.wrap(written)), cache, version);
        out.writeInt(written.length);
        out.write(written);
    }
}
