// Apache Kafka 3.9's own log loader and cleaner over partition directories:
// java -cp 'classes:jars/*' LogCleaning COMMANDS
//
// Every line of the file COMMANDS, its words separated by tabs:
//
//   clean DIRECTORY NOW_MS FIRST_DIRTY KEY=VALUE...   one round of the cleaner, as at that time
//   load DIRECTORY                                    what a start does: leftovers are completed or removed
//
// For each it prints one line: the end of the round (or -1), the log end offset, the segments' base offsets.

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Delayed;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import kafka.log.Cleaner;
import kafka.log.CleanerStats;
import kafka.log.LogToClean;
import kafka.log.UnifiedLog;
import kafka.log.UnifiedLog$;
import kafka.server.BrokerTopicStats;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.utils.Throttler;
import scala.Option;
import scala.Tuple2;
import scala.runtime.BoxedUnit;

public class LogCleaning {
    static final int MEMORY = 1 << 20;

    public static void main(String[] arguments) throws Exception {
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] words = line.split("\t");
            long now = words[0].equals("clean") ? Long.parseLong(words[2]) : 0;
            Properties settings = new Properties();
            for (int place = 4; place < words.length; place++) {
                String[] setting = words[place].split("=", 2);
                settings.put(setting[0], setting[1]);
            }
            StandingClock clock = new StandingClock(now);
            UnifiedLog log = open(new File(words[1]), new LogConfig(settings), clock);
            long cleaned = -1;
            if (words[0].equals("clean")) {
                log.updateHighWatermark(log.logEndOffset());
                cleaned = clean(log, Long.parseLong(words[3]), now, clock);
            }
            StringBuilder answer = new StringBuilder(cleaned + " " + log.logEndOffset());
            for (LogSegment segment : log.logSegments()) {
                answer.append(' ').append(segment.baseOffset());
            }
            log.close();
            System.out.println(answer);
        }
    }

    static UnifiedLog open(File directory, LogConfig config, Time clock) {
        return UnifiedLog$.MODULE$.apply(
            directory, config, 0, Long.MAX_VALUE, new NoScheduler(), new BrokerTopicStats(false), clock, 900_000,
            new ProducerStateManagerConfig(Integer.MAX_VALUE, false), 600_000, new LogDirFailureChannel(1), true,
            Option.empty(), true, new ConcurrentHashMap<>(), false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }

    static long clean(UnifiedLog log, long firstDirty, long now, Time clock) throws Exception {
        Throttler throttler = new Throttler(Double.MAX_VALUE, Long.MAX_VALUE, "cleaner-io", "bytes", clock);
        Cleaner cleaner = new Cleaner(
            0, new SkimpyOffsetMap(MEMORY, "MD5"), 1 << 16, 1 << 20, 0.9, throttler, clock, partition -> BoxedUnit.UNIT);
        long end = Math.min(log.lastStableOffset(), log.activeSegment().baseOffset());
        LogToClean work = new LogToClean(log.topicPartition(), log, firstDirty, end, false);
        Tuple2<Object, CleanerStats> done = cleaner.doClean(work, now);
        return (Long) done._1();
    }

    record StandingClock(long milliseconds) implements Time {
        @Override
        public long nanoseconds() {
            return milliseconds * 1_000_000;
        }

        @Override
        public void sleep(long ms) {
        }

        @Override
        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        }
    }

    static class NoScheduler implements Scheduler {
        @Override
        public void startup() {
        }

        @Override
        public void shutdown() {
        }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            return new Never();
        }

        @Override
        public void resizeThreadPool(int size) {
        }
    }

    static class Never extends FutureTask<Void> implements ScheduledFuture<Void> {
        Never() {
            super(() -> null);
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return Long.MAX_VALUE;
        }

        @Override
        public int compareTo(Delayed other) {
            return 0;
        }
    }
}
