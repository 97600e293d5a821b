package dev.headrace;

/**
 * This driver may not write to the run any more: a newer attempt holds it, or the run's claim is gone.
 *
 * <p>The class name is a contract: the harness looks for it in a query's cause chain.
 */
public class FencedException extends RuntimeException {
    public FencedException(String message) {
        // No stack trace: the message says all, and Spark logs it as an error in any case.
        super(message, null, false, false);
    }

    public FencedException(String message, Throwable cause) {
        super(message, cause, false, false);
    }
}
