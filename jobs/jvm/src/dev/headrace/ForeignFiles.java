package dev.headrace;

import java.io.IOException;
import java.io.OutputStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.hadoop.fs.UnsupportedFileSystemException;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager;
import org.apache.spark.unsafe.Platform;

/**
 * Spark's own manager, for the log that a file sink keeps beside its output: the output may lie anywhere
 * (HDFS, ABFS, GCS), and Spark asks one class for both.
 */
final class ForeignFiles implements CheckpointFiles {
    private final CheckpointFileManager spark;

    ForeignFiles(Path path, Configuration conf) {
        this.spark = sparksChoice(path, conf);
    }

    private static CheckpointFileManager sparksChoice(Path path, Configuration conf) {
        try {
            return new FileContextBasedCheckpointFileManager(path, conf);
        } catch (Throwable e) {
            // Scala declares no exceptions, so the compiler would not let us catch this one by its name.
            if (e instanceof UnsupportedFileSystemException) {
                return new FileSystemBasedCheckpointFileManager(path, conf);
            }
            Platform.throwException(e);
            throw new IllegalStateException("not reached", e);
        }
    }

    @Override
    public PendingFile create(Path path, boolean overwrite) {
        return new SparkFile(spark.createAtomic(path, overwrite));
    }

    @Override
    public FSDataInputStream open(Path path) {
        return spark.open(path);
    }

    @Override
    public FileStatus[] list(Path directory, PathFilter filter) {
        return spark.list(directory, filter);
    }

    @Override
    public void makeDirectory(Path path) {
        spark.mkdirs(path);
    }

    @Override
    public boolean exists(Path path) {
        return spark.exists(path);
    }

    @Override
    public void delete(Path path) {
        spark.delete(path);
    }

    @Override
    public boolean isLocal() {
        return spark.isLocal();
    }

    private static final class SparkFile implements PendingFile {
        private final CheckpointFileManager.CancellableFSDataOutputStream stream;

        SparkFile(CheckpointFileManager.CancellableFSDataOutputStream stream) {
            this.stream = stream;
        }

        @Override
        public OutputStream content() {
            return stream;
        }

        @Override
        public void publish() throws IOException {
            stream.close();
        }

        @Override
        public void discard() {
            stream.cancel();
        }
    }
}
