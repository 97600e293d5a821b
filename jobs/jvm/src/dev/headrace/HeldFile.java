package dev.headrace;

import java.io.EOFException;
import org.apache.hadoop.fs.FSInputStream;

/** A file whose content is at hand. */
final class HeldFile extends FSInputStream {
    private final byte[] content;
    private int position;

    HeldFile(byte[] content) {
        this.content = content;
    }

    @Override
    public int read() {
        return position < content.length ? content[position++] & 0xff : -1;
    }

    @Override
    public int read(byte[] into, int offset, int length) {
        if (length == 0) {
            return 0;
        }
        if (position >= content.length) {
            return -1;
        }
        int count = Math.min(length, content.length - position);
        System.arraycopy(content, position, into, offset, count);
        position += count;
        return count;
    }

    @Override
    public int available() {
        return content.length - position;
    }

    @Override
    public void seek(long to) throws EOFException {
        if (to < 0 || to > content.length) {
            throw new EOFException("position " + to + " of " + content.length);
        }
        position = (int) to;
    }

    @Override
    public long getPos() {
        return position;
    }

    @Override
    public boolean seekToNewSource(long to) {
        return false;
    }
}
