<?php

declare(strict_types=1);

namespace Samovar\Bench\Bootstrap;

// The services that a request uses: a few of many, as usual.
const USED = [
    \Generated\Catalog\Service07::class, \Generated\Cart\Service29::class, \Generated\Customer\Service13::class,
    \Generated\Pricing\Service21::class, \Generated\Stock\Service04::class, \Generated\Delivery\Service18::class,
    \Generated\Billing\Service25::class, \Generated\Search\Service02::class, \Generated\Mail\Service11::class,
    \Generated\Report\Service16::class,
];

/** A table of their labels and totals. */
function answer(Container $container): string
{
    $rows = '';
    foreach (USED as $position => $id) {
        $service = $container->get($id);
        $total = $service->add('standard', $position + 1)->add('reduced', 2)->total();
        $rows .= sprintf("<tr><td>%s</td><td>%s</td></tr>\n", htmlspecialchars($service->label()), $total);
    }

    return "<!doctype html>\n<title>Totals</title>\n<table>\n$rows</table>\n";
}
