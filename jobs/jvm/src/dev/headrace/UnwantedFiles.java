package dev.headrace;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.Path;

/**
 * Changelogs that Spark wants removed, until enough of a directory are together to be worth a request.
 *
 * <p>Spark finds what it removes by listing, each time anew: what is forgotten here with the process is named
 * again by the next one, and what is named twice waits once. A checksum waits with its file, so that neither
 * is left without the other. Only names that are never given again may wait, those with an id of their own
 * (state format 2): a removal that comes late cannot hit a newer file.
 */
final class UnwantedFiles {
    /** What Spark lets pile up by default: thirty versions, a file and its checksum each. */
    static final int ENOUGH = 60;

    static final long PATIENCE_NANOS = TimeUnit.MINUTES.toNanos(5);

    private final Map byDirectory = new HashMap();

    static boolean canWait(Path path) {
        String name = path.getName();
        return name.indexOf('_') > 0
                && (name.endsWith(".changelog") || (name.contains(".changelog") && name.endsWith(".crc")));
    }

    /** Takes one in; returns all of its directory that are due by now, which are forgotten here. */
    synchronized List add(Path path, long nowNanos) {
        Waiting waiting = (Waiting) byDirectory.get(path.getParent());
        if (waiting == null) {
            waiting = new Waiting(nowNanos);
            byDirectory.put(path.getParent(), waiting);
        }
        waiting.paths.add(path);
        if (waiting.paths.size() < ENOUGH && nowNanos - waiting.sinceNanos < PATIENCE_NANOS) {
            return Collections.emptyList();
        }
        byDirectory.remove(path.getParent());
        return new ArrayList(waiting.paths);
    }

    private static final class Waiting {
        private final Set paths = new LinkedHashSet();
        private final long sinceNanos;

        Waiting(long sinceNanos) {
            this.sinceNanos = sinceNanos;
        }
    }
}
