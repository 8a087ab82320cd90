// Apache Kafka's own log code for the tests, one JVM for all of them: java -cp 'classes:jars/*' LogTool
//
// Every line on stdin is a command, its words separated by tabs:
//
//   write DIRECTORY SEED    a partition's directory with one closed segment, written by Kafka's LogSegment
//   dump WORD...            kafka.tools.DumpLogSegments with these arguments
//
// Every answer on stdout is a line of three numbers (bytes of output, bytes of errors, 1 if it threw), then those bytes.

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Random;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.BatchMetadata;
import org.apache.kafka.storage.internals.log.CompletedTxn;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.ProducerStateManager;

public class LogTool {
    static final long TIMESTAMP = 1_700_000_000_000L;
    static final long PRODUCER = 1000;

    static ByteArrayOutputStream said = new ByteArrayOutputStream();
    static ByteArrayOutputStream complained = new ByteArrayOutputStream();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        // Before any Scala is loaded: its console keeps the streams that it finds.
        System.setOut(new PrintStream(new Switch(true), true, "UTF-8"));
        System.setErr(new PrintStream(new Switch(false), true, "UTF-8"));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t");
            said.reset();
            complained.reset();
            int failed = 0;
            try {
                if (words[0].equals("write")) {
                    new Writer(new File(words[1]), Long.parseLong(words[2])).write();
                } else {
                    kafka.tools.DumpLogSegments.main(Arrays.copyOfRange(words, 1, words.length));
                }
            } catch (Throwable error) {
                failed = 1;
                System.err.println(error);
            }
            System.out.flush();
            System.err.flush();
            answers.print(said.size() + " " + complained.size() + " " + failed + "\n");
            said.writeTo(answers);
            complained.writeTo(answers);
            answers.flush();
        }
    }

    static class Switch extends OutputStream {
        final boolean isOutput;

        Switch(boolean isOutput) {
            this.isOutput = isOutput;
        }

        @Override
        public void write(int one) {
            (isOutput ? said : complained).write(one);
        }

        @Override
        public void write(byte[] many, int from, int count) {
            (isOutput ? said : complained).write(many, from, count);
        }
    }

    // Format, codec, kinds of batches: all from the seed.
    static class Writer {
        final File directory;
        final Random chance;
        final byte magic;
        final Compression codec;
        final TimestampType timestamps;
        final long base;
        long offset;
        int sequence = 0;
        int epoch = 0;

        Writer(File directory, long seed) {
            this.directory = directory;
            chance = new Random(seed);
            magic = (byte) (seed % 3);
            CompressionType[] codecs = CompressionType.values();
            codec = Compression.of(codecs[(int) (seed / 3 % (magic == 2 ? 5 : 4))]).build();
            timestamps = magic > 0 && chance.nextInt(3) == 0 ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
            base = offset = chance.nextInt(3) == 0 ? chance.nextInt(1_000_000) : 0;
        }

        void write() throws Exception {
            directory.mkdirs();
            Map<String, Object> settings = new HashMap<>();
            settings.put("index.interval.bytes", 100 + chance.nextInt(300));
            LogSegment segment = LogSegment.open(directory, base, new LogConfig(settings), Time.SYSTEM, 0, false);
            int appends = 2 + chance.nextInt(10);
            for (int n = 0; n < appends; n++) {
                boolean isTransactional = magic == 2 && chance.nextInt(4) == 0;
                epoch += chance.nextInt(3) / 2;
                long first = offset;
                MemoryRecords records = batch(isTransactional);
                segment.append(offset - 1, records);
                if (isTransactional) {
                    boolean isAborted = chance.nextBoolean();
                    segment.append(offset, marker(isAborted));
                    if (isAborted) {
                        segment.updateTxnIndex(new CompletedTxn(PRODUCER, first, offset, true), offset);
                    }
                    offset++;
                }
                if (magic == 2 && chance.nextInt(8) == 0) {
                    segment.append(offset, leaderChange());
                    offset++;
                }
                if (chance.nextInt(6) == 0) {
                    offset += chance.nextInt(4);
                }
            }
            segment.onBecomeInactiveSegment();
            segment.flush();
            segment.close();
            if (magic == 2) {
                snapshot();
            }
        }

        MemoryRecords batch(boolean isTransactional) {
            boolean isIdempotent = magic == 2 && (isTransactional || chance.nextBoolean());
            long horizon = magic == 2 && chance.nextInt(5) == 0 ? TIMESTAMP + 5 : RecordBatch.NO_TIMESTAMP;
            MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
                new ByteBufferOutputStream(1024), magic, codec, timestamps, offset, TIMESTAMP + 77,
                isIdempotent ? PRODUCER : RecordBatch.NO_PRODUCER_ID, (short) (isIdempotent ? 3 : -1),
                isIdempotent ? sequence : RecordBatch.NO_SEQUENCE, isTransactional, false,
                magic == 2 ? epoch : RecordBatch.NO_PARTITION_LEADER_EPOCH, Integer.MAX_VALUE, horizon);
            int count = 1 + chance.nextInt(6);
            for (int n = 0; n < count; n++) {
                Header[] headers = magic == 2 && chance.nextInt(3) == 0
                    ? new Header[] {new RecordHeader("kind", bytes(3)), new RecordHeader("é", null)} : new Header[0];
                builder.appendWithOffset(offset, TIMESTAMP + chance.nextInt(1000), bytes(5), bytes(80), headers);
                offset++;
                if (magic < 2 && codec.type() == CompressionType.NONE || chance.nextInt(7) > 0) {
                    continue;
                }
                offset++;
            }
            if (isIdempotent) {
                sequence += count;
            }
            MemoryRecords records = builder.build();
            for (RecordBatch one : records.batches()) {
                offset = one.lastOffset() + 1;
            }
            return records;
        }

        byte[] bytes(int most) {
            if (chance.nextInt(6) == 0) {
                return null;
            }
            char[] letters = new char[chance.nextInt(most + 1)];
            for (int n = 0; n < letters.length; n++) {
                letters[n] = "abcdefghij 0123456789ßλ".charAt(chance.nextInt(23));
            }
            return new String(letters).getBytes(StandardCharsets.UTF_8);
        }

        MemoryRecords marker(boolean isAborted) {
            return MemoryRecords.withEndTransactionMarker(offset, TIMESTAMP, epoch, PRODUCER, (short) 3,
                new EndTransactionMarker(isAborted ? ControlRecordType.ABORT : ControlRecordType.COMMIT, 17));
        }

        MemoryRecords leaderChange() {
            return MemoryRecords.withLeaderChangeMessage(offset, TIMESTAMP, epoch, ByteBuffer.allocate(256),
                new LeaderChangeMessage().setLeaderId(1));
        }

        void snapshot() throws Exception {
            Map<Long, ProducerStateEntry> producers = new HashMap<>();
            for (int n = 0; n < chance.nextInt(4); n++) {
                OptionalLong open = chance.nextBoolean() ? OptionalLong.of(n) : OptionalLong.empty();
                Optional<BatchMetadata> last = chance.nextInt(3) > 0
                    ? Optional.of(new BatchMetadata(chance.nextInt(5), n, 0, TIMESTAMP)) : Optional.empty();
                producers.put(2 * PRODUCER + n, new ProducerStateEntry(2 * PRODUCER + n, (short) n, n - 1, TIMESTAMP + n, open, last));
            }
            ProducerStateManager.writeSnapshot(new File(directory, String.format("%020d.snapshot", offset)), producers, true);
        }
    }
}
