package dev.headrace;

import org.apache.hadoop.fs.Path;

/**
 * Which log of a query's checkpoint a file belongs to: {@code offsets/<batch>} is written before a batch
 * runs, {@code commits/<batch>} after it, {@code sources/<source>/<entry>} while its input is chosen.
 */
final class LogEntry {
    private static final int OTHER = 0;
    private static final int BEGINS_BATCH = 1;
    private static final int ENDS_BATCH = 2;

    private final int kind;
    private final Path path;

    private LogEntry(int kind, Path path) {
        this.kind = kind;
        this.path = path;
    }

    static LogEntry of(Path path) {
        Path parent = path.getParent();
        if (parent == null || !isNumbered(path.getName())) {
            return new LogEntry(OTHER, path);
        }
        if (parent.getName().equals("commits")) {
            return new LogEntry(ENDS_BATCH, path);
        }
        boolean begins = isSourceLog(parent) || parent.getName().equals("offsets");
        return new LogEntry(begins ? BEGINS_BATCH : OTHER, path);
    }

    /**
     * True for entries that commit the driver to a batch it has not run yet. A source's own log counts: the
     * file source writes there, just before offsets/, which files the next batch will read.
     */
    boolean beginsBatch() {
        return kind == BEGINS_BATCH;
    }

    boolean isLogged() {
        return kind != OTHER;
    }

    Path path() {
        return path;
    }

    /** The number in a log file's name ({@code 12}, {@code 19.compact}), or -1 for any other file. */
    static long numberOf(String name) {
        String digits = name.endsWith(".compact") ? name.substring(0, name.length() - ".compact".length()) : name;
        if (digits.isEmpty() || digits.length() > 18) {
            return -1;
        }
        for (int i = 0; i < digits.length(); i++) {
            char c = digits.charAt(i);
            if (c < '0' || c > '9') {
                return -1;
            }
        }
        return Long.parseLong(digits);
    }

    /** A file in a log, whatever log it is. Only there can a number not be the name of a directory. */
    static boolean isFileOfLog(Path path) {
        Path parent = path.getParent();
        return parent != null && isNumbered(path.getName()) && (isLog(parent) || isSourceLog(parent));
    }

    /** Also the log that a file sink keeps beside its output. */
    static boolean isLog(Path path) {
        String name = path.getName();
        return name.equals("offsets") || name.equals("commits") || name.equals("_spark_metadata");
    }

    /**
     * {@code queries/<query>/sources/<source>}, and nothing else that is called sources: not a query of that name,
     * nor the output of a file sink, whose log ends a batch.
     */
    private static boolean isSourceLog(Path path) {
        Path sources = path.getParent();
        Path query = sources == null ? null : sources.getParent();
        Path queries = query == null ? null : query.getParent();
        return queries != null
                && sources.getName().equals("sources")
                && queries.getName().equals("queries")
                && !path.getName().equals("_spark_metadata");
    }

    private static boolean isNumbered(String name) {
        return numberOf(name) >= 0;
    }
}
