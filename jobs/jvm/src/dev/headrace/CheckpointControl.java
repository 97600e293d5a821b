package dev.headrace;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;

/**
 * What the harness calls through py4j. All of it belongs to the driver's JVM, hence static.
 *
 * <p><b>Drain.</b> After {@link #drain} returns true, no batch begins any more, and every batch that has begun
 * can be seen in {@code offsets/}. The flag alone would not do: a stream thread that has read it just before
 * might still be writing its entry, and the harness would take the query for idle and cut the batch.
 */
public final class CheckpointControl {
    private static final Object LOCK = new Object();
    /** The last batch that a query may begin, by the path of its checkpoint. */
    private static final Map LAST_BATCHES = new HashMap();

    private static boolean draining;
    private static int beginning;

    private CheckpointControl() {}

    /** Begins a drain and waits until no entry is being written. On S3 that can take as long as one PUT. */
    public static void drain() throws InterruptedException {
        drain(Long.MAX_VALUE);
    }

    /** As {@link #drain()}, but false after the time limit; the flag stays set. */
    public static boolean drain(long timeoutMillis) throws InterruptedException {
        long now = System.nanoTime() / 1000000L;
        long deadline = timeoutMillis > Long.MAX_VALUE - Math.max(now, 0) ? Long.MAX_VALUE : now + timeoutMillis;
        synchronized (LOCK) {
            draining = true;
            while (beginning > 0) {
                long left = deadline - System.nanoTime() / 1000000L;
                if (left <= 0) {
                    return false;
                }
                LOCK.wait(Math.min(left, 60000L));
            }
            return true;
        }
    }

    public static boolean isDraining() {
        synchronized (LOCK) {
            return draining;
        }
    }

    /** Ends a drain: the next query that starts in this session may run batches again. */
    public static void resume() {
        synchronized (LOCK) {
            draining = false;
        }
    }

    /**
     * The query with this checkpoint begins no batch after {@code lastBatch}: it ends as if it were drained, before
     * its source is told that the batches so far are done with. For a rehearsal.
     */
    public static void endAfter(String checkpoint, long lastBatch) {
        synchronized (LOCK) {
            LAST_BATCHES.put(new Path(checkpoint).toUri().getPath(), Long.valueOf(lastBatch));
        }
    }

    static void enter(Path entry) {
        synchronized (LOCK) {
            if (draining) {
                throw new DrainedException(
                        "the driver drains: " + entry + " is not written, its batch does not begin");
            }
            if (isBeyondLast(entry)) {
                throw new DrainedException(entry + " is not written: the rehearsal of the query ends before it");
            }
            beginning++;
        }
    }

    private static boolean isBeyondLast(Path entry) {
        Path log = entry.getParent();
        if (LAST_BATCHES.isEmpty() || !log.getName().equals("offsets")) {
            return false;
        }
        Long last = (Long) LAST_BATCHES.get(log.getParent().toUri().getPath());
        return last != null && LogEntry.numberOf(entry.getName()) > last.longValue();
    }

    static void leave() {
        synchronized (LOCK) {
            beginning--;
            LOCK.notifyAll();
        }
    }

    /**
     * Takes the run for this attempt, before its first query starts.
     *
     * @throws FencedException if a claim of this attempt or of a newer one exists
     */
    public static void claim(String runPathUri, int attempt, String bodyJson, Configuration conf)
            throws IOException {
        Path run = new Path(runPathUri);
        CheckpointFiles files = HeadraceCheckpointFileManager.filesFor(run, conf);
        new RunFence(files, run, attempt).claim(bodyJson);
        if (files.isLocal()) {
            DirectoryFiles.sweep(DirectoryFiles.toLocal(run));
        }
    }

    /**
     * The newest entries of each query of a run, read from the store:
     * {@code {"orders":{"offsets":12,"commits":11}}}; -1 where there is none. A query whose two numbers
     * differ is in the middle of a batch.
     */
    public static String batches(String runPathUri, Configuration conf) throws IOException {
        Path queries = new Path(runPathUri, "queries");
        CheckpointFiles files = HeadraceCheckpointFileManager.filesFor(queries, conf);
        FileStatus[] found = listOrNothing(files, queries);
        String[] names = new String[found.length];
        for (int i = 0; i < found.length; i++) {
            names[i] = found[i].getPath().getName();
        }
        Arrays.sort(names);
        StringBuilder json = new StringBuilder("{");
        for (int i = 0; i < names.length; i++) {
            Path query = new Path(queries, names[i]);
            json.append(i == 0 ? "" : ",").append(quote(names[i]));
            json.append(":{\"offsets\":").append(newestIn(files, new Path(query, "offsets")));
            json.append(",\"commits\":").append(newestIn(files, new Path(query, "commits"))).append("}");
        }
        return json.append("}").toString();
    }

    private static long newestIn(CheckpointFiles files, Path log) throws IOException {
        long newest = -1;
        FileStatus[] found = listOrNothing(files, log);
        for (int i = 0; i < found.length; i++) {
            newest = Math.max(newest, LogEntry.numberOf(found[i].getPath().getName()));
        }
        return newest;
    }

    private static FileStatus[] listOrNothing(CheckpointFiles files, Path directory) throws IOException {
        try {
            return files.list(directory, RunFence.Everything.FILTER);
        } catch (FileNotFoundException nothing) {
            return new FileStatus[0];
        }
    }

    private static String quote(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else if (c < ' ') {
                quoted.append(String.format("\\u%04x", new Object[] {Integer.valueOf(c)}));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append("\"").toString();
    }
}
