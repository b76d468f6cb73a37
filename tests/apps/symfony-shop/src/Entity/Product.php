<?php

declare(strict_types=1);

namespace App\Entity;

use Doctrine\ORM\Mapping as ORM;

#[ORM\Entity]
class Product
{
    #[ORM\Id, ORM\GeneratedValue, ORM\Column]
    private ?int $id = null;

    public function __construct(
        #[ORM\Column(length: 80)]
        public string $name,
        #[ORM\Column]
        public int $cents,
        #[ORM\Column]
        public \DateTimeImmutable $changed,
    ) {
    }

    public function getId(): ?int
    {
        return $this->id;
    }
}
