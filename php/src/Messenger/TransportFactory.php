<?php

declare(strict_types=1);

namespace Samovar\Runtime\Messenger;

use Symfony\Component\Messenger\Exception\InvalidArgumentException;
use Symfony\Component\Messenger\MessageBusInterface;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\TransportFactoryInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;

/**
 * Creates the transports whose DSN is `samovar://QUEUE`. Register it as a service:
 *
 *     Samovar\Runtime\Messenger\TransportFactory:
 *         autoconfigure: true
 *         arguments: ['@messenger.routable_message_bus']
 *
 * Options, in the DSN or below `options`: `priority`, `attempts` and `dead_letter`.
 */
final class TransportFactory implements TransportFactoryInterface
{
    private const SCHEME = 'samovar://';
    private const OPTIONS = ['priority' => 0, 'attempts' => 0, 'dead_letter' => 'auto'];
    private const DEAD_LETTER = ['auto', 'messenger', 'samovar'];

    /** @param MessageBusInterface|null $bus handles messages at once where there is no server */
    public function __construct(private ?MessageBusInterface $bus = null)
    {
    }

    public function supports(string $dsn, array $options): bool
    {
        return str_starts_with($dsn, self::SCHEME);
    }

    /** @throws InvalidArgumentException when the DSN or an option is not allowed */
    public function createTransport(
        string $dsn,
        array $options,
        SerializerInterface $serializer,
    ): TransportInterface {
        [$queue, $query] = explode('?', substr($dsn, \strlen(self::SCHEME)), 2) + [1 => ''];
        if (preg_match('/^[A-Za-z0-9][A-Za-z0-9._-]*$/D', $queue) !== 1) {
            throw new InvalidArgumentException("The DSN `$dsn` names no queue\nhint: write samovar://QUEUE");
        }
        parse_str($query, $inDsn);
        unset($options['transport_name']);
        $options = $inDsn + $options + self::OPTIONS;
        $unknown = array_diff_key($options, self::OPTIONS);
        if ($unknown !== []) {
            $known = implode(', ', array_keys(self::OPTIONS));
            $name = array_key_first($unknown);
            throw new InvalidArgumentException("The transport has no option `$name`\nhint: use $known");
        }
        if (!\in_array($options['dead_letter'], self::DEAD_LETTER, true)) {
            $words = implode(', ', self::DEAD_LETTER);
            throw new InvalidArgumentException("`dead_letter` is not allowed\nhint: use one of $words");
        }

        return new Transport(
            $queue,
            $serializer,
            self::number('priority', $options['priority']),
            self::number('attempts', $options['attempts']),
            $options['dead_letter'],
            $this->bus,
        );
    }

    private static function number(string $name, mixed $value): int
    {
        $number = filter_var($value, FILTER_VALIDATE_INT);
        if ($number === false) {
            throw new InvalidArgumentException("The option `$name` is not a number\nhint: write $name=5");
        }

        return $number;
    }
}
