package dev.headrace;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FutureDataInputStreamBuilder;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The changelogs of a state store, read ahead while the store is loaded.
 *
 * <p>Spark replays them one after the other, and opens each twice, with its checksum: eight requests for one
 * small file, each waited for. Here the directory is listed once, and those that follow are fetched side by
 * side, each once. Only files whose name is never given again are held (state format 2), and only for as long
 * as a load goes on: what was not read ahead, or could not be, is opened as ever, and fails as ever.
 */
final class Changelogs {
    private static final Logger LOG = LoggerFactory.getLogger(Changelogs.class);
    private static final int THREADS = 8;
    static final int MOST_FILES = 32;
    static final long MOST_BYTES = 8L * 1024 * 1024;
    /** Spark opens each twice, for its format and for its content; and the newest before, to find the others. */
    private static final int MOST_OPENED = 4;

    private static final ExecutorService FETCHERS = fetchers();

    private final FileSystem fs;
    /** In the order in which they are replayed. */
    private List listed = Collections.emptyList();

    private final Map held = new HashMap();

    Changelogs(FileSystem fs) {
        this.fs = fs;
    }

    static boolean holds(Path path) {
        return UnwantedFiles.canWait(path) && versionOf(path) >= 0;
    }

    FSDataInputStream open(Path path) throws IOException {
        Future content = begin(fs.makeQualified(path));
        if (content == null) {
            return fs.open(path);
        }
        try {
            return new FSDataInputStream(new HeldFile((byte[]) content.get()));
        } catch (ExecutionException failed) {
            LOG.debug("{} could not be read ahead", path, failed.getCause());
            return fs.open(path);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
            throw (IOException) new InterruptedIOException("interrupted at " + path).initCause(ended);
        }
    }

    /** The content as it comes, or null for a file that is not here, or that is too large to be held. */
    private synchronized Future begin(Path path) throws IOException {
        int at = find(path);
        if (at < 0) {
            list(path.getParent());
            at = find(path);
        }
        if (at < 0) {
            return null;
        }
        forgetBefore(versionOf(path));
        fetchFrom(at);
        Held file = (Held) held.get(path);
        return file == null ? null : file.opened();
    }

    private int find(Path path) {
        for (int i = 0; i < listed.size(); i++) {
            if (((FileStatus) listed.get(i)).getPath().equals(path)) {
                return i;
            }
        }
        return -1;
    }

    private void list(Path parent) throws IOException {
        held.clear();
        List found = new ArrayList();
        FileStatus[] statuses = fs.listStatus(parent);
        for (int i = 0; i < statuses.length; i++) {
            if (holds(statuses[i].getPath())) {
                found.add(statuses[i]);
            }
        }
        Collections.sort(found, new ByVersion());
        listed = found;
    }

    /** A load only goes forward: what it has passed it does not open again. */
    private void forgetBefore(long version) {
        for (Iterator paths = held.keySet().iterator(); paths.hasNext(); ) {
            if (versionOf((Path) paths.next()) < version) {
                paths.remove();
            }
        }
    }

    private void fetchFrom(int at) {
        long bytes = 0;
        for (int i = at; i < listed.size() && i < at + MOST_FILES; i++) {
            FileStatus status = (FileStatus) listed.get(i);
            bytes += status.getLen();
            if (bytes > MOST_BYTES) {
                return;
            }
            if (!held.containsKey(status.getPath())) {
                held.put(status.getPath(), new Held(FETCHERS.submit(new Fetch(fs, status))));
            }
        }
    }

    /** Of {@code <version>_<id>.changelog} and its checksum; -1 of any other. */
    private static long versionOf(Path path) {
        String name = path.getName();
        int end = name.indexOf('_');
        return end > 0 ? LogEntry.numberOf(name.substring(0, end)) : -1;
    }

    private static ExecutorService fetchers() {
        ThreadPoolExecutor pool = new ThreadPoolExecutor(
                THREADS, THREADS, 30, TimeUnit.SECONDS, new LinkedBlockingQueue(), new Daemons());
        pool.allowCoreThreadTimeOut(true);
        return pool;
    }

    private static final class Held {
        private Future content;
        private int opened;

        Held(Future content) {
            this.content = content;
        }

        /** Null when it has been opened as often as a load does, and is let go. */
        Future opened() {
            Future found = content;
            opened++;
            if (opened == MOST_OPENED) {
                content = null;
            }
            return found;
        }
    }

    private static final class Fetch implements Callable {
        private final FileSystem fs;
        private final FileStatus status;

        Fetch(FileSystem fs, FileStatus status) {
            this.fs = fs;
            this.status = status;
        }

        /** With the status at hand S3A asks for nothing but the content. */
        @Override
        public Object call() throws Exception {
            FutureDataInputStreamBuilder builder = fs.openFile(status.getPath());
            builder.withFileStatus(status);
            builder.opt("fs.option.openfile.read.policy", "whole-file");
            Future opened = builder.build();
            FSDataInputStream stream = (FSDataInputStream) opened.get();
            try {
                byte[] content = new byte[(int) status.getLen()];
                stream.readFully(0, content);
                return content;
            } finally {
                stream.close();
            }
        }
    }

    private static final class ByVersion implements Comparator {
        @Override
        public int compare(Object one, Object other) {
            Path left = ((FileStatus) one).getPath();
            Path right = ((FileStatus) other).getPath();
            int byVersion = Long.compare(versionOf(left), versionOf(right));
            return byVersion != 0 ? byVersion : left.getName().compareTo(right.getName());
        }
    }

    private static final class Daemons implements ThreadFactory {
        @Override
        public Thread newThread(Runnable work) {
            Thread thread = new Thread(work, "headrace-changelogs");
            thread.setDaemon(true);
            return thread;
        }
    }
}
