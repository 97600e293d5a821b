package dev.headrace;

import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;

/**
 * Checkpoints in a directory: a temporary file, then a hard link (create) or an atomic move (overwrite).
 *
 * <p>A link is the one call that both fails when the name is taken and shows the whole content at once.
 * Hadoop's own local file system is passed by: its rename looks first and moves later, and it keeps a
 * {@code .crc} file beside each file that goes stale when anything else writes.
 */
final class DirectoryFiles implements CheckpointFiles {
    private static final int BUFFER_BYTES = 64 * 1024;
    private static final String LOCK_NAME = ".headrace.lock";
    /** One process may not lock the same file twice; threads of this driver queue here instead. */
    private static final Object LOCKING = new Object();

    private final FileSystem raw;
    private final boolean links;

    DirectoryFiles(Configuration conf) throws IOException {
        this.raw = FileSystem.getLocal(conf).getRawFileSystem();
        this.links = conf.getBoolean("headrace.directory.links", true);
    }

    @Override
    public PendingFile create(Path path, boolean overwrite) throws IOException {
        return new TemporaryFile(toLocal(path), overwrite, links);
    }

    @Override
    public FSDataInputStream open(Path path) throws IOException {
        return raw.open(path);
    }

    @Override
    public FileStatus[] list(Path directory, final PathFilter filter) throws IOException {
        return raw.listStatus(directory, new PathFilter() {
            @Override
            public boolean accept(Path path) {
                return !isArtefact(path.getName()) && filter.accept(path);
            }
        });
    }

    @Override
    public void makeDirectory(Path path) throws IOException {
        createDurably(toLocal(path));
    }

    @Override
    public boolean exists(Path path) {
        return Files.exists(toLocal(path), new LinkOption[0]);
    }

    @Override
    public void delete(Path path) throws IOException {
        try {
            raw.delete(path, true);
        } catch (FileNotFoundException gone) {
            return;
        }
        // Spark copies SST files with Hadoop's local file system, whose .crc file would stay for ever.
        Files.deleteIfExists(hadoopChecksum(toLocal(path)));
    }

    @Override
    public boolean isLocal() {
        return true;
    }

    /** Deletes what killed writers left in the middle of a write. Only for a caller that just claimed the run. */
    static int sweep(java.nio.file.Path directory) throws IOException {
        File[] children = directory.toFile().listFiles();
        int deleted = 0;
        for (int i = 0; children != null && i < children.length; i++) {
            File child = children[i];
            if (child.isDirectory()) {
                deleted += sweep(child.toPath());
            } else if (isTemporary(child.getName()) && Files.deleteIfExists(child.toPath())) {
                deleted++;
            }
        }
        return deleted;
    }

    static java.nio.file.Path toLocal(Path path) {
        return new File(path.toUri().getPath()).toPath();
    }

    /** A directory whose own name is not on the disk takes its files with it when the power goes. */
    private static void createDurably(java.nio.file.Path directory) throws IOException {
        java.nio.file.Path there = directory;
        while (!Files.exists(there, new LinkOption[0])) {
            there = there.getParent();
        }
        Files.createDirectories(directory, new FileAttribute[0]);
        for (java.nio.file.Path made = directory; !made.equals(there); made = made.getParent()) {
            sync(made.getParent());
        }
    }

    /** A file is on the disk when its content is, and its name: that is in the directory. */
    private static void sync(java.nio.file.Path directory) throws IOException {
        FileChannel channel = FileChannel.open(directory, new OpenOption[] {StandardOpenOption.READ});
        try {
            channel.force(true);
        } catch (IOException e) {
            // What file systems say that know no such thing; they have their own ways.
            if (!"Invalid argument".equals(e.getMessage())) {
                throw e;
            }
        } finally {
            channel.close();
        }
    }

    private static boolean isArtefact(String name) {
        return name.startsWith(".") && (name.endsWith(".crc") || isTemporary(name) || name.equals(LOCK_NAME));
    }

    private static boolean isTemporary(String name) {
        return name.startsWith(".") && name.endsWith(".tmp");
    }

    private static java.nio.file.Path hadoopChecksum(java.nio.file.Path path) {
        return path.resolveSibling("." + path.getFileName() + ".crc");
    }

    private static final class TemporaryFile implements PendingFile {
        private final java.nio.file.Path target;
        private final java.nio.file.Path temporary;
        private final boolean overwrite;
        private final boolean links;
        private final FileOutputStream file;
        private final OutputStream content;

        TemporaryFile(java.nio.file.Path target, boolean overwrite, boolean links) throws IOException {
            this.target = target;
            this.overwrite = overwrite;
            this.links = links;
            // Spark's own pattern for temporary names: everything that reads a checkpoint passes it by.
            this.temporary = target.resolveSibling("." + target.getFileName() + "." + UUID.randomUUID() + ".tmp");
            this.file = openCreatingParents(temporary);
            this.content = new BufferedOutputStream(file, BUFFER_BYTES);
        }

        private static FileOutputStream openCreatingParents(java.nio.file.Path path) throws IOException {
            try {
                return new FileOutputStream(path.toFile());
            } catch (FileNotFoundException missingParent) {
                createDurably(path.getParent());
                return new FileOutputStream(path.toFile());
            }
        }

        @Override
        public OutputStream content() {
            return content;
        }

        @Override
        public void publish() throws IOException {
            content.flush();
            // A link to data that is not on the disk yet turns into an empty log file when the power goes.
            file.getFD().sync();
            content.close();
            if (overwrite) {
                replace();
            } else if (links) {
                linkOnce();
            } else {
                moveUnderLock();
            }
            sync(target.getParent());
        }

        @Override
        public void discard() throws IOException {
            try {
                file.close();
            } finally {
                Files.deleteIfExists(temporary);
            }
        }

        private void replace() throws IOException {
            Files.move(temporary, target, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
            Files.deleteIfExists(hadoopChecksum(target));
        }

        private void linkOnce() throws IOException {
            try {
                Files.createLink(target, temporary);
            } catch (java.nio.file.FileAlreadyExistsException taken) {
                // NFS asks again when an answer was lost, and is refused by what it made itself the first time.
                if (!isOurs()) {
                    throw alreadyThere();
                }
            } catch (NoSuchFileException swept) {
                throw swept;
            } catch (UnsupportedOperationException noLinks) {
                moveUnderLock();
                return;
            } catch (FileSystemException refused) {
                // File systems without hard links answer "operation not permitted", not "unsupported".
                moveUnderLock();
                return;
            }
            temporary.toFile().delete(); // the file is published; a leftover name is swept by the next claim
        }

        private boolean isOurs() throws IOException {
            try {
                return Files.isSameFile(target, temporary);
            } catch (NoSuchFileException gone) {
                return false;
            }
        }

        /** The operating system drops the lock with the process that held it, so a killed writer blocks nobody. */
        private void moveUnderLock() throws IOException {
            synchronized (LOCKING) {
                java.nio.file.Path lockFile = target.resolveSibling(LOCK_NAME);
                FileChannel channel = FileChannel.open(
                        lockFile, new OpenOption[] {StandardOpenOption.CREATE, StandardOpenOption.WRITE});
                try {
                    FileLock lock = channel.lock();
                    try {
                        if (Files.exists(target, new LinkOption[0])) {
                            throw alreadyThere();
                        }
                        Files.move(temporary, target, StandardCopyOption.ATOMIC_MOVE);
                    } finally {
                        lock.release();
                    }
                } finally {
                    channel.close();
                }
            }
        }

        private FileAlreadyExistsException alreadyThere() {
            return new FileAlreadyExistsException(target + " already exists: another driver wrote it");
        }
    }
}
