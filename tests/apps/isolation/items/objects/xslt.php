<?php

/** Parameters of a transformation that was loaded above the checkpoint. */

declare(strict_types=1);

return [
    'boot' => static fn () => new XSLTProcessor(),
    'leak' => static fn (XSLTProcessor $processor) => $processor->setParameter('', 'dirt', '77'),
    'look' => static fn (XSLTProcessor $processor) => $processor->getParameter('', 'dirt'),
    'resident' => 'kept',
    'needs' => ['xsl'],
];
