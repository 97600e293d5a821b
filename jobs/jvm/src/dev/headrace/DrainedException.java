package dev.headrace;

/**
 * A batch was not started because the driver drains: the normal end of a drained query, not a fault.
 *
 * <p>The class name is a contract: the harness looks for it in a query's cause chain.
 */
public class DrainedException extends RuntimeException {
    public DrainedException(String message) {
        // No stack trace: the message says all, and Spark logs it as an error in any case.
        super(message, null, false, false);
    }
}
