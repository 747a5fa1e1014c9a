import java.nio.file.Path;
import java.time.Instant;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedThread;
import jdk.jfr.consumer.RecordingFile;

/** Reads time, thread and stack depth of each sample with jdk.jfr.consumer. */
public class Loop {
    public static void main(String[] arguments) throws Exception {
        long samples = 0, threads = 0, frames = 0;
        Instant last = Instant.EPOCH;
        try (RecordingFile file = new RecordingFile(Path.of(arguments[0]))) {
            while (file.hasMoreEvents()) {
                RecordedEvent event = file.readEvent();
                if (!event.getEventType().getName().equals("jdk.ExecutionSample")) {
                    continue;
                }
                Instant start = event.getStartTime();
                last = start.isAfter(last) ? start : last;
                RecordedThread thread = event.getThread("sampledThread");
                threads += thread != null && thread.getOSThreadId() != 0 ? 1 : 0;
                frames += event.getStackTrace() == null ? 0 : event.getStackTrace().getFrames().size();
                samples++;
            }
        }
        System.out.println(samples + " samples, " + threads + " with threads, " + frames + " frames, last at " + last);
    }
}
