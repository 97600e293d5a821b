package dev.headrace;

import java.io.IOException;
import java.io.OutputStream;

/** A file that is being written and that nobody can see yet. Ends in exactly one of the two last methods. */
interface PendingFile {
    OutputStream content();

    /**
     * Makes the whole file visible at once.
     *
     * @throws org.apache.hadoop.fs.FileAlreadyExistsException if it may not replace the file that is there
     */
    void publish() throws IOException;

    /** Leaves nothing behind. May be called after a failed {@link #publish}. */
    void discard() throws IOException;
}
