package dev.headrace;

import java.io.IOException;
import java.nio.file.NoSuchFileException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.unsafe.Platform;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Spark's way to its checkpoints ({@code spark.sql.streaming.checkpointFileManagerClass}), made so that a
 * write either is there or fails the batch, a fenced driver writes no log entry, and a draining one begins
 * no batch. See docs/concepts/checkpoints.md.
 */
public class HeadraceCheckpointFileManager implements CheckpointFileManager {
    private static final Logger LOG = LoggerFactory.getLogger(HeadraceCheckpointFileManager.class);

    private final Path path;
    private final CheckpointFiles files;
    /** Null when the path is not below this driver's run: a file sink's log, a rehearsal, a state reader. */
    private final RunFence fence;

    public HeadraceCheckpointFileManager(Path path, Configuration conf) throws IOException {
        Path qualified = path.getFileSystem(conf).makeQualified(path);
        boolean inRun = RunFence.covers(qualified, conf);
        this.path = qualified;
        this.files = inRun ? filesFor(qualified, conf) : filesForAny(qualified, conf);
        this.fence = inRun ? RunFence.of(files, conf) : null;
    }

    private static CheckpointFiles filesForAny(Path path, Configuration conf) throws IOException {
        FileSystem fs = path.getFileSystem(conf);
        return isDirectory(fs) || isConditional(fs, path) ? filesFor(path, conf) : new ForeignFiles(path, conf);
    }

    /** Only places that keep every promise: for checkpoints and claims. */
    static CheckpointFiles filesFor(Path path, Configuration conf) throws IOException {
        FileSystem fs = path.getFileSystem(conf);
        if (isDirectory(fs)) {
            return new DirectoryFiles(conf);
        }
        if (isConditional(fs, path)) {
            return new ObjectFiles(fs, conf);
        }
        throw new IOException("Headrace keeps checkpoints in a directory or in S3 with conditional writes; "
                + path + " is neither. Use file:// or s3a:// (S3A of Hadoop 3.4.2 or newer,"
                + " fs.s3a.create.conditional.enabled not switched off).");
    }

    private static boolean isDirectory(FileSystem fs) {
        return fs instanceof LocalFileSystem || fs instanceof RawLocalFileSystem;
    }

    private static boolean isConditional(FileSystem fs, Path path) throws IOException {
        return fs.hasPathCapability(path, ObjectFiles.CONDITIONAL_CREATE);
    }

    @Override
    public CheckpointFileManager.CancellableFSDataOutputStream createAtomic(Path path, boolean overwrite) {
        try {
            return new GatedStream(files.create(path, overwrite), LogEntry.of(path), fence);
        } catch (IOException e) {
            throw rethrow(e);
        }
    }

    @Override
    public FSDataInputStream open(Path path) {
        try {
            return files.open(path);
        } catch (IOException e) {
            throw rethrow(e);
        }
    }

    @Override
    public FileStatus[] list(Path path, PathFilter filter) {
        try {
            return files.list(path, filter);
        } catch (IOException e) {
            throw rethrow(e);
        }
    }

    @Override
    public FileStatus[] list(Path path) {
        return list(path, RunFence.Everything.FILTER);
    }

    @Override
    public void mkdirs(Path path) {
        try {
            files.makeDirectory(path);
        } catch (IOException e) {
            throw rethrow(e);
        }
    }

    /**
     * Spark asks this of a log entry just before it writes it, and takes a yes for a rival it cannot name.
     * The fence can: then the query ends as fenced, not with a riddle.
     */
    @Override
    public boolean exists(Path path) {
        try {
            boolean found = files.exists(path);
            if (found && fence != null && LogEntry.of(path).isLogged()) {
                fence.check();
            }
            return found;
        } catch (IOException e) {
            throw rethrow(e);
        }
    }

    @Override
    public void delete(Path path) {
        try {
            files.delete(path);
        } catch (IOException e) {
            throw rethrow(e);
        }
    }

    @Override
    public boolean isLocal() {
        return files.isLocal();
    }

    @Override
    public Path createCheckpointDirectory() {
        mkdirs(path);
        return path;
    }

    /** No annotation: Spark 4.1 has no such method. */
    public void close() {}

    /** Spark's Scala interface declares no exceptions, but its callers match on IOException's own types. */
    private static RuntimeException rethrow(IOException e) {
        Platform.throwException(e);
        return new IllegalStateException("not reached");
    }

    /** Where a write passes the two gates, as late as possible: between them and the file there is one call. */
    static final class GatedStream extends CheckpointFileManager.CancellableFSDataOutputStream {
        /** No successor starts, and gets so far that it purges, in less. */
        private static final long LONG_WRITE_NANOS = 1_000_000_000L;

        private final PendingFile file;
        private final LogEntry entry;
        private final RunFence fence;
        private boolean ended;

        GatedStream(PendingFile file, LogEntry entry, RunFence fence) {
            super(file.content());
            this.file = file;
            this.entry = entry;
            this.fence = fence;
        }

        @Override
        public synchronized void close() throws IOException {
            if (ended) {
                return;
            }
            long began = System.nanoTime();
            if (entry.beginsBatch()) {
                CheckpointControl.enter(entry.path());
                try {
                    publish();
                } finally {
                    CheckpointControl.leave();
                }
            } else {
                publish();
            }
            ended = true;
            if (System.nanoTime() - began > LONG_WRITE_NANOS) {
                // It may have been frozen between the look and the write, and let through: no batch runs then.
                lookForSuccessor();
            }
        }

        @Override
        public synchronized void cancel() {
            if (ended) {
                return;
            }
            ended = true;
            try {
                file.discard();
            } catch (IOException e) {
                // The caller is on its way out with the fault that matters; what is left here is invisible.
                LOG.warn("could not clean up after the cancelled write of " + entry.path(), e);
            }
        }

        private void lookForSuccessor() throws IOException {
            if (fence != null && entry.isLogged()) {
                fence.check();
            }
        }

        private void publish() throws IOException {
            lookForSuccessor();
            flush();
            try {
                file.publish();
            } catch (NoSuchFileException swept) {
                // A successor sweeps what its predecessors left half-written: then the claim tells the cause.
                if (fence != null) {
                    fence.checkSuccessor();
                }
                throw swept;
            }
        }
    }
}
