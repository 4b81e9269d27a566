// What pgjdbc does with a proxy: prints one "name<TAB>value" line for everything it got, rows as a|b;c|d.
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

public class Client {
    static String rows(ResultSet result) throws SQLException {
        List<String> lines = new ArrayList<>();
        int columns = result.getMetaData().getColumnCount();
        while (result.next()) {
            List<String> fields = new ArrayList<>();
            for (int column = 1; column <= columns; column++) {
                fields.add(String.valueOf(result.getString(column)));
            }
            lines.add(String.join("|", fields));
        }
        return String.join(";", lines);
    }

    static String column(ResultSet result, String name) throws SQLException {
        List<String> values = new ArrayList<>();
        while (result.next()) {
            values.add(result.getString(name));
        }
        return String.join(";", values);
    }

    static void say(String name, String value) {
        System.out.println(name + "\t" + value);
    }

    static String refusal(Connection connection, String sql) {
        try (Statement statement = connection.createStatement()) {
            return rows(statement.executeQuery(sql));
        } catch (SQLException error) {
            return error.getSQLState();
        }
    }

    public static void main(String[] arguments) throws SQLException {
        String url = arguments[0], cities = arguments[1], amounts = arguments[2], rows = arguments[3];
        Properties access = new Properties();
        access.setProperty("user", "ada");
        access.setProperty("password", System.getenv("PGPASSWORD"));
        access.setProperty("sslmode", "require");
        access.setProperty("prepareThreshold", "2");
        try (Connection connection = DriverManager.getConnection(url, access)) {
            try (Statement statement = connection.createStatement()) {
                say("plain", rows(statement.executeQuery(cities)));
            }
            try (PreparedStatement statement = connection.prepareStatement(amounts)) {
                for (int turn = 1; turn <= 4; turn++) { // from the third on as a server-side statement, in binary
                    statement.setBigDecimal(1, new BigDecimal(50));
                    say("prepared" + turn, rows(statement.executeQuery()));
                }
                say("types", statement.getMetaData().getColumnTypeName(2) + " " + statement.getMetaData().getColumnTypeName(3));
            }
            say("refused", refusal(connection, rows));
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.setFetchSize(2);
                say("fetched", rows(statement.executeQuery(cities)));
            }
            say("refusedInside", refusal(connection, rows));
            say("aborted", refusal(connection, "SELECT 1"));
            connection.rollback();
            connection.setAutoCommit(true);
            var about = connection.getMetaData();
            say("tables", column(about.getTables(null, "public", "%", new String[] {"TABLE"}), "TABLE_NAME"));
            say("columns", column(about.getColumns(null, "public", "customers", "%"), "COLUMN_NAME"));
            say("keys", column(about.getPrimaryKeys(null, "public", "order_items"), "COLUMN_NAME"));
            say("foreign", column(about.getImportedKeys(null, "public", "orders"), "PKTABLE_NAME"));
            say("indexes", column(about.getIndexInfo(null, "public", "orders", false, true), "INDEX_NAME"));
            say("schemas", column(about.getSchemas(), "TABLE_SCHEM"));
            rows(about.getTypeInfo());
            rows(about.getFunctions(null, null, "%"));
            rows(about.getTablePrivileges(null, "public", "%"));
            say("valid", String.valueOf(connection.isValid(5)));
        }
        access.setProperty("preferQueryMode", "simple");
        try (Connection connection = DriverManager.getConnection(url, access);
                PreparedStatement statement = connection.prepareStatement(amounts)) {
            statement.setBigDecimal(1, new BigDecimal(50));
            say("simple", rows(statement.executeQuery()));
        }
    }
}
