<?php

declare(strict_types=1);

namespace Samovar\Runtime\Tests\Messenger;

use PHPUnit\Framework\TestCase;
use Samovar\Runtime\Messenger\Transport;
use Samovar\Runtime\Messenger\TransportFactory;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\InvalidArgumentException;
use Symfony\Component\Messenger\Exception\TransportException;
use Symfony\Component\Messenger\Handler\HandlersLocator;
use Symfony\Component\Messenger\MessageBus;
use Symfony\Component\Messenger\Middleware\HandleMessageMiddleware;
use Symfony\Component\Messenger\Stamp\HandledStamp;
use Symfony\Component\Messenger\Transport\Serialization\PhpSerializer;

/** Transports on the command line, where there is no server. tests/suite tests those of a server. */
final class TransportFactoryTest extends TestCase
{
    public function testOnlyItsSchemeIsSupported(): void
    {
        $factory = new TransportFactory();
        self::assertTrue($factory->supports('samovar://emails', []));
        self::assertFalse($factory->supports('redis://samovar', []));
    }

    public function testOptionsAreInTheDsnOrBesideIt(): void
    {
        $options = ['transport_name' => 'async', 'priority' => 3];
        foreach (['samovar://e-mails.new', 'samovar://a?priority=-5&dead_letter=samovar&attempts=9'] as $dsn) {
            $transport = (new TransportFactory())->createTransport($dsn, $options, new PhpSerializer());
            self::assertInstanceOf(Transport::class, $transport);
            self::assertSame(0, $transport->getMessageCount());
        }
    }

    public function testWrongDsnsAreRefused(): void
    {
        foreach (
            [
                'samovar://' => 'names no queue',
                'samovar://a/b' => 'names no queue',
                'samovar://a?prioritty=1' => 'no option `prioritty`',
                'samovar://a?priority=high' => '`priority` is not a number',
                'samovar://a?dead_letter=no' => 'use one of auto, messenger, samovar',
            ] as $dsn => $message
        ) {
            try {
                (new TransportFactory())->createTransport($dsn, [], new PhpSerializer());
                self::fail($dsn);
            } catch (InvalidArgumentException $thrown) {
                self::assertStringContainsString($message, $thrown->getMessage());
                self::assertStringContainsString('hint: ', $thrown->getMessage());
            }
        }
    }

    public function testMessageIsHandledAtOnceWithoutServer(): void
    {
        $locator = new HandlersLocator([\stdClass::class => [static fn (\stdClass $message) => $message->text]]);
        $factory = new TransportFactory(new MessageBus([new HandleMessageMiddleware($locator)]));
        $transport = $factory->createTransport('samovar://emails', [], new PhpSerializer());
        $sent = $transport->send(new Envelope((object) ['text' => 'Hello']));
        self::assertSame('Hello', $sent->last(HandledStamp::class)?->getResult());
        self::assertSame([], $transport->get());
    }

    public function testTransportWithoutBusSaysWhatToDo(): void
    {
        $transport = (new TransportFactory())->createTransport('samovar://emails', [], new PhpSerializer());
        $this->expectException(TransportException::class);
        $this->expectExceptionMessage("hint: pass '@messenger.routable_message_bus'");
        $transport->send(new Envelope(new \stdClass()));
    }
}
