import java.io.IOException;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** What Kafka makes of names by rules of principals: rules, then names; a line each, "-" where no rule matches. */
public class PrincipalJudge {
    public static void main(String[] arguments) throws Exception {
        for (int i = 0; i < arguments.length; i += 2) {
            String said;
            try {
                said = "=" + SslPrincipalMapper.fromRules(arguments[i]).getName(arguments[i + 1]);
            } catch (IOException error) {
                said = "-";
            } catch (IllegalArgumentException error) {
                said = "!";
            }
            System.out.println(said);
        }
    }
}
