// Several commands of Kafka's tools in one JVM: java -cp 'classes:jars/*' Commands < COMMANDS
//
// A line of the input is a class with a main method and its arguments, tabs between them. A last
// argument that begins with "< " is the standard input of the command, with \n for a new line. After
// each command a line "== 0" is printed, or "== 1 REASON" when it would have ended the process.
// Output and errors are whole lines: a producer that an earlier command left open may log while a
// command prints a line in pieces.

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

public class Commands {
    static class Ended extends Error {
        Ended(int code, String message) {
            super(code + " " + message);
        }
    }

    // Writes to the standard output of the process, a line at a time.
    static class Lines extends OutputStream {
        static final OutputStream OUTPUT = new FileOutputStream(FileDescriptor.out);
        final ByteArrayOutputStream line = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int octet) throws IOException {
            line.write(octet);
            if (octet != '\n') return;
            OUTPUT.write(line.toByteArray());
            line.reset();
        }

        synchronized void end() throws IOException {
            if (line.size() > 0) write('\n');
        }

        PrintStream stream() {
            return new PrintStream(this, false, StandardCharsets.UTF_8);
        }
    }

    // The first end of a command counts: TopicCommand catches it, and would end once more with 1.
    static Ended ended;

    public static void main(String[] arguments) throws Exception {
        Lines output = new Lines();
        Lines errors = new Lines();
        System.setOut(output.stream());
        System.setErr(errors.stream());
        Exit.setExitProcedure((code, message) -> {
            if (ended == null) ended = new Ended(code, message);
            throw ended;
        });
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split("\t");
            String last = words[words.length - 1];
            String given = last.startsWith("< ") ? last.substring(2).replace("\\n", "\n") : "";
            System.setIn(new ByteArrayInputStream(given.getBytes(StandardCharsets.UTF_8)));
            if (!given.isEmpty()) words = Arrays.copyOf(words, words.length - 1);
            String outcome = "== 0";
            ended = null;
            try {
                Class.forName(words[0])
                    .getMethod("main", String[].class)
                    .invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
            } catch (InvocationTargetException error) {
                Throwable cause = error.getCause();
                boolean isGood = cause instanceof Ended && cause.getMessage().startsWith("0 ");
                outcome = isGood ? "== 0" : "== 1 " + cause;
            }
            // The last line of a command may have no end.
            errors.end();
            output.end();
            System.out.println(outcome.replace("\n", " "));
        }
        System.exit(0);
    }
}
