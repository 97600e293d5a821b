package dev.headrace;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;

/**
 * The claims of a run, {@code <run>/_attempts/<k>}: who may write to it.
 *
 * <p>Conditional creates alone fence nobody: a driver that was frozen while its successor went on and purged
 * old log files finds those names free again. So before each log entry it looks whether it is still the
 * newest claimant. One listing; the claims of a run are few.
 */
final class RunFence {
    static final String RUN_PATH = "headrace.run.path";
    static final String ATTEMPT = "headrace.attempt";

    private final CheckpointFiles files;
    private final Path run;
    private final long attempt;

    RunFence(CheckpointFiles files, Path run, long attempt) {
        this.files = files;
        this.run = run;
        this.attempt = attempt;
    }

    static boolean covers(Path path, Configuration conf) {
        String run = conf.get(RUN_PATH);
        return run != null && isBelow(path, new Path(run));
    }

    /** The fence of the run this driver was started for. */
    static RunFence of(CheckpointFiles files, Configuration conf) {
        long attempt = conf.getLong(ATTEMPT, -1);
        if (attempt < 0) {
            throw new IllegalArgumentException(
                    RUN_PATH + " is set but " + ATTEMPT + " is not: set spark.hadoop." + ATTEMPT);
        }
        return new RunFence(files, new Path(conf.get(RUN_PATH)), attempt);
    }

    void check() throws IOException {
        long newest = newestClaim();
        refuseIfNewer(newest);
        if (newest < attempt) {
            throw new FencedException("the claim of attempt " + attempt + " on " + run
                    + " is not there: it was never made, or the run was deleted");
        }
    }

    /** Only whether a newer attempt has the run: for a fault that such a successor would explain. */
    void checkSuccessor() throws IOException {
        refuseIfNewer(newestClaim());
    }

    private void refuseIfNewer(long newest) throws FencedException {
        if (newest > attempt) {
            throw new FencedException(
                    "attempt " + newest + " has taken over " + run + ": attempt " + attempt + " stops here");
        }
    }

    void claim(String body) throws IOException {
        long newest = newestClaim();
        if (newest >= attempt) {
            throw new FencedException(
                    "attempt " + newest + " already holds " + run + ": attempt " + attempt + " may not start");
        }
        PendingFile claim = files.create(new Path(claims(), Long.toString(attempt)), false);
        try {
            claim.content().write(body.getBytes(StandardCharsets.UTF_8));
            claim.publish();
        } catch (FileAlreadyExistsException taken) {
            claim.discard();
            throw new FencedException(
                    "attempt " + attempt + " on " + run + " was claimed by another driver", taken);
        } catch (IOException e) {
            claim.discard();
            throw e;
        }
    }

    private long newestClaim() throws IOException {
        FileStatus[] found;
        try {
            found = files.list(claims(), Everything.FILTER);
        } catch (FileNotFoundException noClaimYet) {
            return -1;
        }
        long newest = -1;
        for (int i = 0; i < found.length; i++) {
            newest = Math.max(newest, LogEntry.numberOf(found[i].getPath().getName()));
        }
        return newest;
    }

    private Path claims() {
        return new Path(run, "_attempts");
    }

    /** By path, not by URI: file:/x and file:///x, s3:// and s3a:// name the same place. */
    private static boolean isBelow(Path path, Path run) {
        String authority = path.toUri().getAuthority();
        String runAuthority = run.toUri().getAuthority();
        boolean sameStore = authority == null ? runAuthority == null : authority.equals(runAuthority);
        return sameStore && path.toUri().getPath().startsWith(run.toUri().getPath() + "/");
    }

    static final class Everything implements PathFilter {
        static final PathFilter FILTER = new Everything();

        @Override
        public boolean accept(Path path) {
            return true;
        }
    }
}
