import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatRequest;
import org.apache.kafka.common.requests.StreamsGroupHeartbeatResponse;
import org.apache.kafka.common.requests.AbstractResponse;

/** Joins a group of the streams protocol (KIP-1071), as Kafka Streams would: host, port, group, topic. */
public class StreamsGroup {
    public static void main(String[] arguments) throws Exception {
        var subtopology = new StreamsGroupHeartbeatRequestData.Subtopology()
            .setSubtopologyId("0").setSourceTopics(List.of(arguments[3]));
        var data = new StreamsGroupHeartbeatRequestData()
            .setGroupId(arguments[2]).setMemberId(Uuid.randomUuid().toString()).setMemberEpoch(0)
            .setRebalanceTimeoutMs(10_000).setProcessId("process")
            .setActiveTasks(List.of()).setStandbyTasks(List.of()).setWarmupTasks(List.of())
            .setTopology(new StreamsGroupHeartbeatRequestData.Topology().setSubtopologies(List.of(subtopology)));
        var header = new RequestHeader(ApiKeys.STREAMS_GROUP_HEARTBEAT, (short) 0, "streams", 1);
        ByteBuffer request = new StreamsGroupHeartbeatRequest.Builder(data).build((short) 0).serializeWithHeader(header);
        try (Socket socket = new Socket(arguments[0], Integer.parseInt(arguments[1]))) {
            var out = new DataOutputStream(socket.getOutputStream());
            out.writeInt(request.remaining());
            out.write(request.array(), request.position(), request.remaining());
            var in = new DataInputStream(socket.getInputStream());
            ByteBuffer answer = ByteBuffer.wrap(in.readNBytes(in.readInt()));
            var response = (StreamsGroupHeartbeatResponse) AbstractResponse.parseResponse(answer, header);
            if (response.data().errorCode() != 0) {
                throw new IllegalStateException(response.data().errorCode() + ": " + response.data().errorMessage());
            }
        }
    }
}
