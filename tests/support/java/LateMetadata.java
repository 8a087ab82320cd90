// Makes a Kafka apply every change of its metadata late: java LateMetadata.java PORT MS
//
// It attaches to the Java debugger's port of a broker. Changes are acknowledged by the controller at
// once, and reach the broker's answers after MS milliseconds: topics, settings, ACLs, users. After
// the same time once more the broker's replicas know of them. It prints "attached", and ends with
// the broker.

import com.sun.jdi.Bootstrap;
import com.sun.jdi.Method;
import com.sun.jdi.ObjectReference;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.Value;
import com.sun.jdi.VMDisconnectedException;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.AttachingConnector;
import com.sun.jdi.connect.Connector;
import com.sun.jdi.event.BreakpointEvent;
import com.sun.jdi.event.ClassPrepareEvent;
import com.sun.jdi.event.Event;
import com.sun.jdi.event.EventSet;
import com.sun.jdi.event.LocatableEvent;
import com.sun.jdi.request.BreakpointRequest;
import com.sun.jdi.request.ClassPrepareRequest;
import com.sun.jdi.request.EventRequest;
import java.util.List;
import java.util.Map;

public class LateMetadata {
    // Where a broker takes changes: with KRaft, and from a controller of ZooKeeper.
    static final Map<String, List<String>> PLACES = Map.of(
        "kafka.server.metadata.BrokerMetadataPublisher", List.of("onMetadataUpdate"),
        "kafka.server.metadata.ZkMetadataCache", List.of("updateMetadata"),
        "kafka.server.ReplicaManager", List.of("applyDelta"));
    static final List<String> DELTAS = List.of(
        "topicsDelta", "configsDelta", "clientQuotasDelta", "aclsDelta", "scramDelta",
        "delegationTokenDelta", "featuresDelta");

    public static void main(String[] arguments) throws Exception {
        AttachingConnector connector = Bootstrap.virtualMachineManager().attachingConnectors().stream()
            .filter(each -> each.name().equals("com.sun.jdi.SocketAttach")).findFirst().orElseThrow();
        Map<String, Connector.Argument> settings = connector.defaultArguments();
        settings.get("hostname").setValue("127.0.0.1");
        settings.get("port").setValue(arguments[0]);
        VirtualMachine machine = attached(connector, settings);
        for (String name : PLACES.keySet()) {
            ClassPrepareRequest prepared = machine.eventRequestManager().createClassPrepareRequest();
            prepared.addClassFilter(name);
            prepared.enable();
            machine.classesByName(name).forEach(type -> stopAt(machine, type));
        }
        System.out.println("attached");
        try {
            follow(machine, Long.parseLong(arguments[1]));
        } catch (VMDisconnectedException ended) {
            System.out.println("the broker has ended");
        }
    }

    static VirtualMachine attached(
            AttachingConnector connector, Map<String, Connector.Argument> settings) throws Exception {
        while (true) {
            try {
                return connector.attach(settings);
            } catch (java.net.ConnectException early) {
                Thread.sleep(20); // The broker's Java has just been started.
            }
        }
    }

    static void stopAt(VirtualMachine machine, ReferenceType type) {
        for (String name : PLACES.get(type.name())) {
            for (Method method : type.methodsByName(name)) {
                if (method.isAbstract() || method.isBridge() || method.location() == null) {
                    continue;
                }
                BreakpointRequest stop =
                    machine.eventRequestManager().createBreakpointRequest(method.location());
                stop.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
                stop.enable();
            }
        }
    }

    static void follow(VirtualMachine machine, long lateMs) throws Exception {
        while (true) {
            EventSet events = machine.eventQueue().remove();
            boolean isLate = false;
            for (Event event : events) {
                if (event instanceof ClassPrepareEvent prepared) {
                    stopAt(machine, prepared.referenceType());
                } else if (event instanceof BreakpointEvent stop) {
                    isLate |= hasChange(stop);
                }
            }
            if (isLate) {
                new Thread(() -> resume(events, lateMs)).start();
            } else {
                events.resume();
            }
        }
    }

    static void resume(EventSet events, long lateMs) {
        try {
            Thread.sleep(lateMs);
            events.resume();
        } catch (InterruptedException | VMDisconnectedException ended) {
            // The broker has ended meanwhile.
        }
    }

    static boolean hasChange(LocatableEvent stop) {
        try {
            List<Value> values = stop.thread().frame(0).getArgumentValues();
            Value first = values.isEmpty() ? null : values.get(0);
            if (!(first instanceof ObjectReference delta)
                    || !delta.referenceType().name().endsWith(".MetadataDelta")) {
                return true;
            }
            return DELTAS.stream()
                .map(delta.referenceType()::fieldByName)
                .anyMatch(field -> field != null && delta.getValue(field) != null);
        } catch (com.sun.jdi.IncompatibleThreadStateException running) {
            throw new IllegalStateException(running);
        }
    }
}
