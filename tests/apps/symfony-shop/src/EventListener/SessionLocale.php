<?php

declare(strict_types=1);

namespace App\EventListener;

use Symfony\Component\EventDispatcher\EventSubscriberInterface;
use Symfony\Component\HttpKernel\Event\RequestEvent;
use Symfony\Component\HttpKernel\KernelEvents;

/**
 * Sets the language that the visitor has chosen, before Symfony's own listener sets the
 * translator's.
 */
final class SessionLocale implements EventSubscriberInterface
{
    public const KEY = '_locale';
    private const BEFORE_LOCALE_LISTENER = 20;

    public static function getSubscribedEvents(): array
    {
        return [KernelEvents::REQUEST => ['onRequest', self::BEFORE_LOCALE_LISTENER]];
    }

    public function onRequest(RequestEvent $event): void
    {
        $request = $event->getRequest();
        if ($request->hasPreviousSession()) {
            $request->setLocale($request->getSession()->get(self::KEY, $request->getDefaultLocale()));
        }
    }
}
