package dev.headrace;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BulkDelete;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.hadoop.fs.permission.FsPermission;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Checkpoints in S3 through S3A: one PUT per file, with {@code If-None-Match: *} where the file must be new.
 *
 * <p>No class of S3A or of the AWS SDK is named in types: this jar also serves directories, in images
 * without them.
 */
final class ObjectFiles implements CheckpointFiles {
    private static final Logger LOG = LoggerFactory.getLogger(ObjectFiles.class);
    static final String CONDITIONAL_CREATE = "fs.option.create.conditional.overwrite";
    private static final String WRITER_HEADER = "headrace-writer";
    private static final int PRECONDITION_FAILED = 412;
    private static final int CONDITIONAL_CONFLICT = 409;
    /** How long a write under way may take to come to light, or to nothing. */
    private static final int MOST_LOOKS = 20;

    private static final long PAUSE_MILLIS = 500;

    private final FileSystem fs;
    private final String writer;
    private final UnwantedFiles unwanted = new UnwantedFiles();
    private final Changelogs changelogs;

    ObjectFiles(FileSystem fs, Configuration conf) {
        this.fs = fs;
        this.changelogs = new Changelogs(fs);
        this.writer = conf.get("headrace.writer.id", "unnamed");
    }

    @Override
    public PendingFile create(Path path, boolean overwrite) throws IOException {
        // A fresh id per write, not only per driver: "did I write this object" must mean this very PUT.
        String id = writer + "/" + UUID.randomUUID();
        FSDataOutputStreamBuilder builder = fs.createFile(path);
        builder.recursive();
        builder.overwrite(overwrite);
        // Skips the look for a directory of that name: nothing in a checkpoint is both.
        builder.opt("fs.s3a.create.performance", true);
        builder.opt("fs.s3a.create.header." + WRITER_HEADER, id);
        if (!overwrite) {
            builder.must(CONDITIONAL_CREATE, true);
        }
        return new Upload(fs, path, (FSDataOutputStream) builder.build(), id);
    }

    @Override
    public FSDataInputStream open(Path path) throws IOException {
        return Changelogs.holds(path) ? changelogs.open(path) : fs.open(path);
    }

    @Override
    public FileStatus[] list(Path directory, PathFilter filter) throws IOException {
        return fs.listStatus(directory, filter);
    }

    @Override
    public void makeDirectory(Path path) throws IOException {
        fs.mkdirs(path, FsPermission.getDirDefault());
    }

    /** S3 has no one question for "is there anything here": a HEAD finds a file, a LIST a directory. */
    @Override
    public boolean exists(Path path) throws IOException {
        if (LogEntry.isFileOfLog(path)) {
            return fs.isFile(path);
        }
        if (LogEntry.isLog(path)) {
            return fs.isDirectory(path);
        }
        return fs.exists(path);
    }

    /** Spark purges some ten files per batch: without the looks around of a file system, many at once. */
    @Override
    public void delete(Path path) throws IOException {
        if (UnwantedFiles.canWait(path)) {
            List due = unwanted.add(path, System.nanoTime());
            if (!due.isEmpty()) {
                deleteAll(path.getParent(), due);
            }
            return;
        }
        if (LogEntry.isFileOfLog(path) || isStateFile(path.getName())) {
            deleteAll(path.getParent(), Collections.singletonList(path));
            return;
        }
        try {
            fs.delete(path, true);
        } catch (FileNotFoundException gone) {
            return;
        }
    }

    private void deleteAll(Path directory, List paths) throws IOException {
        BulkDelete deletion = fs.createBulkDelete(directory);
        try {
            int page = deletion.pageSize();
            for (int from = 0; from < paths.size(); from += page) {
                failOnRefusal(deletion.bulkDelete(paths.subList(from, Math.min(from + page, paths.size()))));
            }
        } finally {
            deletion.close();
        }
    }

    private static boolean isStateFile(String name) {
        return name.endsWith(".changelog")
                || name.endsWith(".zip")
                || name.endsWith(".sst")
                || name.endsWith(".crc");
    }

    private static void failOnRefusal(List refusals) throws IOException {
        if (!refusals.isEmpty()) {
            Map.Entry first = (Map.Entry) refusals.get(0);
            throw new IOException("could not delete " + first.getKey() + ": " + first.getValue());
        }
    }

    @Override
    public boolean isLocal() {
        return false;
    }

    private static final class Upload implements PendingFile {
        private final FileSystem fs;
        private final Path path;
        private final FSDataOutputStream stream;
        private final String id;

        Upload(FileSystem fs, Path path, FSDataOutputStream stream, String id) {
            this.fs = fs;
            this.path = path;
            this.stream = stream;
            this.id = id;
        }

        @Override
        public OutputStream content() {
            return stream;
        }

        @Override
        public void publish() throws IOException {
            try {
                stream.close();
            } catch (IOException failed) {
                if (!isRefusedPrecondition(failed)) {
                    throw failed;
                }
                if (!isOurs(failed)) {
                    FileAlreadyExistsException taken =
                            new FileAlreadyExistsException(path + " already exists: another driver wrote it");
                    taken.initCause(failed);
                    throw taken;
                }
                LOG.info("the answer to the write of {} was lost; the object is there and is ours", path);
            }
        }

        @Override
        public void discard() throws IOException {
            stream.abort();
            stream.close();
        }

        /** True when the object that refused us is the one we made: the client's retry met its own first PUT. */
        private boolean isOurs(IOException refused) throws IOException {
            for (int looks = 1; ; looks++) {
                try {
                    byte[] found = writerOf(fs.getXAttrs(path));
                    return found != null && Arrays.equals(found, id.getBytes(StandardCharsets.UTF_8));
                } catch (FileNotFoundException notThere) {
                    // The server refuses while another write of this name is under way: often our own first PUT.
                    if (looks == MOST_LOOKS) {
                        throw refused;
                    }
                }
                pause(refused);
            }
        }

        private static void pause(IOException refused) throws IOException {
            try {
                Thread.sleep(PAUSE_MILLIS);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
                throw refused;
            }
        }

        /** Names of headers have no case, and a proxy before the server may write them as it likes. */
        private static byte[] writerOf(Map headers) {
            for (Iterator names = headers.keySet().iterator(); names.hasNext(); ) {
                String name = (String) names.next();
                if (name.equalsIgnoreCase("header." + WRITER_HEADER)) {
                    return (byte[]) headers.get(name);
                }
            }
            return null;
        }

        private static boolean isRefusedPrecondition(Throwable failed) {
            int depth = 0;
            for (Throwable e = failed; e != null && depth < 20; e = e.getCause()) {
                int status = httpStatus(e);
                if (status == PRECONDITION_FAILED || status == CONDITIONAL_CONFLICT) {
                    return true;
                }
                depth++;
            }
            return false;
        }

        /** The status of an answer from S3, or -1 for any other error. */
        private static int httpStatus(Throwable e) {
            for (Class type = e.getClass(); type != null; type = type.getSuperclass()) {
                if (type.getName().equals("software.amazon.awssdk.core.exception.SdkServiceException")) {
                    try {
                        Object status = type.getMethod("statusCode", new Class[0]).invoke(e, new Object[0]);
                        return ((Integer) status).intValue();
                    } catch (ReflectiveOperationException unknownSdk) {
                        throw new IllegalStateException("this AWS SDK is not one Headrace knows", unknownSdk);
                    }
                }
            }
            return -1;
        }
    }
}
