import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.avro.NameValidator;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;

/**
 * Asks Apache Avro. A line is `text`, referenced schemas and a schema: answers its text. Or it is
 * `pair`, a reader and a writer: answers the incompatibilities. Columns are separated by tabs, an
 * answer is `ok` or `error` and columns.
 */
public class AvroSchemas {
  public static void main(String[] arguments) throws Exception {
    BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] columns = line.split("\t");
      try {
        out.println("ok" + (columns[0].equals("text") ? text(columns) : pair(columns)));
      } catch (RuntimeException error) {
        out.println("error");
      }
    }
  }

  private static String text(String[] columns) {
    Schema.Parser parser = new Schema.Parser(NameValidator.STRICT_VALIDATOR);
    parser.setValidateDefaults(true);
    List<Schema> references = new ArrayList<>();
    for (int index = 1; index < columns.length - 1; index++) {
      references.add(parser.parse(columns[index]));
    }
    return "\t" + parser.parse(columns[columns.length - 1]).toString(references, false);
  }

  private static String pair(String[] columns) {
    Schema reader = new Schema.Parser().parse(columns[1]);
    Schema writer = new Schema.Parser().parse(columns[2]);
    Set<String> reasons = new LinkedHashSet<>();
    for (SchemaCompatibility.Incompatibility reason :
        SchemaCompatibility.checkReaderWriterCompatibility(reader, writer)
            .getResult()
            .getIncompatibilities()) {
      reasons.add(
          "\t" + reason.getType() + " " + reason.getLocation() + " " + reason.getMessage());
    }
    return String.join("", reasons);
  }
}
