<?php

declare(strict_types=1);

namespace Samovar\Runtime\Doctrine;

use Doctrine\DBAL\Connection;

/**
 * A Doctrine connection whose transaction is the task's that has begun it: the parameter `wrapperClass`, in Symfony
 * `wrapper_class`.
 *
 * Doctrine counts the levels of one transaction, whoever begins them: another task's commit() would only count one
 * down, say that all is well, and write nothing. Here it is refused.
 */
final class TaskConnection extends Connection
{
    /** @var \WeakReference<object>|null */
    private ?\WeakReference $owner = null;

    public function beginTransaction()
    {
        $this->letOnlyItsOwner();
        if ($this->getTransactionNestingLevel() === 0) {
            $this->owner = \WeakReference::create(Asker::now() ?? $this);
        }

        return parent::beginTransaction();
    }

    public function commit()
    {
        $this->letOnlyItsOwner();

        return parent::commit();
    }

    public function rollBack()
    {
        $this->letOnlyItsOwner();

        return parent::rollBack();
    }

    private function letOnlyItsOwner(): void
    {
        $owner = $this->owner?->get();
        if ($this->getTransactionNestingLevel() === 0 || $owner === (Asker::now() ?? $this)) {
            return;
        }
        if ($owner !== null && !Asker::isOver($owner)) {
            throw Refused::anothersTransaction();
        }
        // It has ended in the middle, and its transaction with it: nothing is left to count.
        $this->close();
    }
}
