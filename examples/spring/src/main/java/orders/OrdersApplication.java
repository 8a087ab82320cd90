package orders;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.core.KafkaOperations;
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.messaging.handler.annotation.SendTo;
import org.springframework.util.backoff.FixedBackOff;

/** Writes the total of each order to `invoices`. An order that fails three times goes to `orders-dlt`. */
@SpringBootApplication
public class OrdersApplication {
    public static void main(String[] arguments) {
        SpringApplication.run(OrdersApplication.class, arguments);
    }

    /** Returns the invoice of an order, which is its price and its count: `7 2`. */
    @KafkaListener(topics = "orders")
    @SendTo("invoices")
    String invoice(String order) {
        String[] numbers = order.split(" ");
        return "total " + Integer.parseInt(numbers[0]) * Integer.parseInt(numbers[1]);
    }

    @Bean
    DefaultErrorHandler errorHandler(KafkaOperations<?, ?> operations) {
        return new DefaultErrorHandler(new DeadLetterPublishingRecoverer(operations), new FixedBackOff(10, 2));
    }
}
