// What pgjdbc makes of batches through a proxy: prints one "name<TAB>value" line for each, counts as 0,0 or error:counts.
import java.math.BigDecimal;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.Properties;
import java.util.stream.Collectors;

public class Batches {
    static void say(String name, String value) {
        System.out.println(name + "\t" + value);
    }

    static String counts(int[] counts) {
        return Arrays.stream(counts).mapToObj(String::valueOf).collect(Collectors.joining(","));
    }

    static String executed(Statement statement) throws SQLException {
        try {
            return counts(statement.executeBatch());
        } catch (BatchUpdateException error) {
            return error.getSQLState() + ":" + counts(error.getUpdateCounts());
        }
    }

    static String batch(Connection connection, String... texts) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (String text : texts) {
                statement.addBatch(text);
            }
            return executed(statement);
        }
    }

    static String first(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement(); ResultSet result = statement.executeQuery(sql)) {
            result.next();
            return result.getString(1);
        }
    }

    static String prepared(Connection connection, String sql, int times, int from) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int turn = 0; turn < times; turn++) {
                if (sql.contains("?")) {
                    statement.setBigDecimal(1, new BigDecimal(from + turn));
                }
                statement.addBatch();
            }
            return executed(statement);
        }
    }

    static void all(Connection connection, String mode) throws SQLException {
        String counted = "SELECT count(*) FROM orders WHERE amount > 100";
        say(mode + "settings", batch(connection, "SET application_name = 'one'", "SET statement_timeout = 60000", "SET application_name = 'two'"));
        say(mode + "name", first(connection, "SHOW application_name"));
        say(mode + "ours", batch(connection, "SET noisegate.epsilon = 2", "SET noisegate.notices = off"));
        say(mode + "prepared", prepared(connection, "SET extra_float_digits = 3", 4, 0));
        say(mode + "again", prepared(connection, "SET extra_float_digits = 3", 4, 0));
        say(mode + "failing", batch(connection, "SET application_name = 'three'", "SET TimeZone = 'Nowhere'", "SET application_name = 'four'"));
        say(mode + "kept", first(connection, "SHOW application_name"));
        say(mode + "badly", batch(connection, "SET application_name = 'five'", "SET noisegate.epsilon = -1"));
        say(mode + "writing", batch(connection, "SET application_name = 'six'", "DELETE FROM orders", "SET work_mem = '1MB'"));
        say(mode + "result", batch(connection, counted, counted));
        say(mode + "results", prepared(connection, "SELECT count(*) FROM orders WHERE amount > ?", 3, 100));
        say(mode + "rows", batch(connection, "SET application_name = 'seven'", "SELECT * FROM orders"));
        connection.setAutoCommit(false);
        say(mode + "cursors", batch(connection, "DECLARE a CURSOR FOR " + counted, "SET LOCAL work_mem = '1MB'", "DECLARE b CURSOR FOR " + counted));
        say(mode + "fetched", String.valueOf(first(connection, "FETCH a").equals(first(connection, "FETCH b"))));
        say(mode + "bound", prepared(connection, "DECLARE c CURSOR FOR SELECT count(*) FROM orders WHERE amount > ?", 1, 100));
        say(mode + "same", String.valueOf(first(connection, "FETCH c").length() > 0));
        say(mode + "inside", batch(connection, "SET LOCAL work_mem = '2MB'", "DECLARE d CURSOR FOR SELECT name FROM customers", "CLOSE b"));
        say(mode + "aborted", batch(connection, "CLOSE b"));
        connection.rollback();
        connection.setAutoCommit(true);
        say(mode + "after", String.valueOf(Integer.parseInt(first(connection, counted)) > 100));
    }

    public static void main(String[] arguments) throws SQLException {
        Properties access = new Properties();
        access.setProperty("user", "ada");
        access.setProperty("password", System.getenv("PGPASSWORD"));
        access.setProperty("sslmode", arguments[1]);
        access.setProperty("prepareThreshold", "2");
        for (String mode : new String[] {"extended", "simple", "extendedForPrepared", "extendedCacheEverything"}) {
            access.setProperty("preferQueryMode", mode);
            try (Connection connection = DriverManager.getConnection(arguments[0], access)) {
                all(connection, mode + " ");
            }
        }
    }
}
