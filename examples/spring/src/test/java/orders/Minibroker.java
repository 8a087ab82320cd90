package orders;

import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A minibroker in a process of its own, with its control API. */
final class Minibroker implements AutoCloseable {
    private final HttpClient http = HttpClient.newHttpClient();
    private final Process process;
    private final String address;
    private final String control;

    Minibroker(String... topics) throws IOException, InterruptedException {
        Path ready = Files.createTempDirectory("minibroker").resolve("ready");
        List<String> command = new ArrayList<>(List.of("minibroker", "serve", "--memory", "--listen", "127.0.0.1:0",
            "--control", "127.0.0.1:0", "--log-level", "warning", "--ready-file", ready.toString()));
        for (String topic : topics) command.addAll(List.of("--topic", topic));
        process = new ProcessBuilder(command).redirectOutput(Redirect.DISCARD).redirectError(Redirect.INHERIT).start();
        while (!Files.exists(ready)) {
            if (!process.isAlive()) throw new IOException("minibroker ended with " + process.exitValue());
            Thread.sleep(5);
        }
        List<String> lines = Files.readAllLines(ready);
        address = lines.get(0).split(" on ")[1];
        control = lines.get(1).split(" on ")[1];
    }

    String address() {
        return address;
    }

    /** Makes requests fail; the fields of a fault are those of `kafka.faults.add` in Python. */
    void addFault(String json) throws IOException, InterruptedException {
        var faults = URI.create(control + "/faults");
        var request = HttpRequest.newBuilder(faults).POST(BodyPublishers.ofString(json)).build();
        var answer = http.send(request, BodyHandlers.ofString());
        if (answer.statusCode() != 201) throw new IOException(answer.body());
    }

    @Override
    public void close() throws InterruptedException {
        process.destroy();
        process.waitFor();
    }
}
