package dev.headrace;

import java.io.IOException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;

/** What a place that keeps checkpoints must be able to do. One implementation per kind of place. */
interface CheckpointFiles {
    PendingFile create(Path path, boolean overwrite) throws IOException;

    FSDataInputStream open(Path path) throws IOException;

    /** @throws java.io.FileNotFoundException if there is no such directory */
    FileStatus[] list(Path directory, PathFilter filter) throws IOException;

    void makeDirectory(Path path) throws IOException;

    boolean exists(Path path) throws IOException;

    /** Recursive; nothing there is fine. */
    void delete(Path path) throws IOException;

    boolean isLocal();
}
