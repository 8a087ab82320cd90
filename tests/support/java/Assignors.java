// Kafka's own server-side assignors, and its hash of topics: java -cp 'classes:jars/*' Assignors FILE
//
// FILE is a list of cases. A case is one line per topic and per member, and a line that says what to
// do, after which the result is printed:
//
//   topic HEX-ID NAME PARTITIONS [RACK,RACK;RACK;...]      racks of the replicas of each partition
//   member ID INSTANCE TOPICS TARGETS                      - is none; TOPICS 0,2; TARGETS 0:1,2;2:0
//   assign NAME HOMOGENEOUS                                a line per member: ID TARGETS, and "."
//   hash                                                   the hash of all topics of the case

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.Utils;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

public class Assignors {
    record Topic(Uuid id, String name, int partitionCount, List<List<String>> racks)
        implements CoordinatorMetadataImage.TopicMetadata {
        public List<String> partitionRacks(int partition) {
            return new ArrayList<>(partition < racks.size() ? racks.get(partition) : List.of());
        }
    }

    static final List<Topic> topics = new ArrayList<>();
    static final Map<String, MemberSubscriptionAndAssignmentImpl> members = new LinkedHashMap<>();
    static final Map<Uuid, Map<Integer, String>> owners = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "topic" -> topics.add(topic(words));
                case "member" -> addMember(words);
                case "assign" -> {
                    assign(words[1], Boolean.parseBoolean(words[2]));
                    forget();
                }
                default -> {
                    hash();
                    forget();
                }
            }
        }
    }

    static void forget() {
        topics.clear();
        members.clear();
        owners.clear();
    }

    static Topic topic(String[] words) {
        long high = Long.parseUnsignedLong(words[1].substring(0, 16), 16);
        long low = Long.parseUnsignedLong(words[1].substring(16), 16);
        List<List<String>> racks = new ArrayList<>();
        if (words.length > 4) {
            for (String partition : words[4].split(";")) {
                racks.add(partition.equals("-") ? List.of() : List.of(partition.split(",")));
            }
        }
        return new Topic(new Uuid(high, low), words[2], Integer.parseInt(words[3]), racks);
    }

    static void addMember(String[] words) {
        Set<Uuid> subscribed = new LinkedHashSet<>();
        if (!words[3].equals("-")) {
            for (String number : words[3].split(",")) subscribed.add(topics.get(Integer.parseInt(number)).id());
        }
        Map<Uuid, Set<Integer>> targets = new HashMap<>();
        if (!words[4].equals("-")) {
            for (String target : words[4].split(";")) {
                String[] parts = target.split(":");
                Uuid id = topics.get(Integer.parseInt(parts[0])).id();
                List<Integer> partitions = new ArrayList<>();
                for (String number : parts[1].split(",")) {
                    partitions.add(Integer.parseInt(number));
                    owners.computeIfAbsent(id, any -> new HashMap<>()).put(Integer.parseInt(number), words[1]);
                }
                targets.put(id, new HashSet<>(partitions));
            }
        }
        members.put(words[1], new MemberSubscriptionAndAssignmentImpl(
            Optional.empty(),
            words[2].equals("-") ? Optional.empty() : Optional.of(words[2]),
            subscribed,
            new Assignment(targets)));
    }

    static void assign(String name, boolean isHomogeneous) {
        ConsumerGroupPartitionAssignor assignor = name.equals("range") ? new RangeAssignor() : new UniformAssignor();
        GroupAssignment result = assignor.assign(
            new GroupSpecImpl(
                Collections.unmodifiableMap(members),
                isHomogeneous ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS,
                owners),
            new SubscribedTopicDescriber() {
                public int numPartitions(Uuid id) {
                    return topics.stream().filter(topic -> topic.id().equals(id)).findFirst().map(Topic::partitionCount).orElse(-1);
                }

                public Set<String> racksForPartition(Uuid id, int partition) {
                    return Set.of();
                }
            });
        Map<String, MemberAssignment> sorted = new TreeMap<>(result.members());
        sorted.forEach((member, assignment) -> {
            List<String> targets = new ArrayList<>();
            for (int number = 0; number < topics.size(); number++) {
                Set<Integer> partitions = assignment.partitions().getOrDefault(topics.get(number).id(), Set.of());
                if (!partitions.isEmpty()) {
                    targets.add(number + ":" + String.join(",", new TreeSet<>(partitions).stream().map(String::valueOf).toList()));
                }
            }
            System.out.println(member + " " + (targets.isEmpty() ? "-" : String.join(";", targets)));
        });
        System.out.println(".");
    }

    static void hash() {
        Map<String, Long> hashes = new HashMap<>();
        for (Topic topic : topics) hashes.put(topic.name(), Utils.computeTopicHash(topic.name(), IMAGE));
        System.out.println(Utils.computeGroupHash(hashes));
    }

    static final CoordinatorMetadataImage IMAGE = new CoordinatorMetadataImage() {
        public Set<Uuid> topicIds() {
            return Set.of();
        }

        public Set<String> topicNames() {
            return Set.of();
        }

        public Optional<CoordinatorMetadataImage.TopicMetadata> topicMetadata(String name) {
            return topics.stream().filter(topic -> topic.name().equals(name)).findFirst().map(topic -> topic);
        }

        public Optional<CoordinatorMetadataImage.TopicMetadata> topicMetadata(Uuid id) {
            return Optional.empty();
        }

        public CoordinatorMetadataDelta emptyDelta() {
            return CoordinatorMetadataDelta.EMPTY;
        }

        public long version() {
            return 0;
        }

        public boolean isEmpty() {
            return false;
        }
    };
}
