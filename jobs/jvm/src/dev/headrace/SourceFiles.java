package dev.headrace;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/** What lies where a file source reads: one answer for all files, because each call from Python costs. */
public final class SourceFiles {
    private SourceFiles() {}

    /** A line per data file: when it was last changed, in milliseconds, a tab, its URL as Spark writes it. */
    public static String list(String pattern, Configuration conf) throws IOException {
        Path place = new Path(pattern);
        FileSystem fs = place.getFileSystem(conf);
        StringBuilder found = new StringBuilder();
        FileStatus[] roots = fs.globStatus(place);
        for (int i = 0; roots != null && i < roots.length; i++) {
            if (roots[i].isDirectory()) {
                addAll(found, fs, roots[i].getPath());
            } else if (isData(roots[i].getPath(), roots[i].getPath().depth() - 1)) {
                add(found, roots[i]);
            }
        }
        return found.toString();
    }

    private static void addAll(StringBuilder found, FileSystem fs, Path root) throws IOException {
        int depth = root.depth();
        // Flat, which S3 answers a thousand at a time, whatever the directories.
        RemoteIterator files = fs.listFiles(root, true);
        while (files.hasNext()) {
            FileStatus file = (FileStatus) files.next();
            if (isData(file.getPath(), depth)) {
                add(found, file);
            }
        }
    }

    private static void add(StringBuilder found, FileStatus file) {
        found.append(file.getModificationTime()).append('\t').append(file.getPath().toUri()).append('\n');
    }

    /** Hidden files, and those that begin with _, are no data; nor is anything in such a directory. */
    private static boolean isData(Path file, int depth) {
        if (file.getName().endsWith("._COPYING_")) {
            return false;
        }
        for (Path part = file; part != null && part.depth() > depth; part = part.getParent()) {
            if (part.getName().startsWith(".") || part.getName().startsWith("_")) {
                return false;
            }
        }
        return true;
    }
}
