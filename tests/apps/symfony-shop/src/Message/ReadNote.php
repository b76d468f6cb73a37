<?php

declare(strict_types=1);

namespace App\Message;

use App\Entity\Note;
use Doctrine\ORM\EntityManagerInterface;
use Symfony\Component\Messenger\Attribute\AsMessageHandler;

#[AsMessageHandler]
final class ReadNote
{
    public function __construct(private EntityManagerInterface $manager)
    {
    }

    public function __invoke(NoteWritten $message): void
    {
        $note = $this->manager->find(Note::class, $message->id);
        if ($note !== null) {
            $note->isRead = true;
            $this->manager->flush();
        }
    }
}
