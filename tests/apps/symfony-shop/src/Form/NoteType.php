<?php

declare(strict_types=1);

namespace App\Form;

use App\Entity\Note;
use App\Entity\Product;
use Symfony\Bridge\Doctrine\Form\Type\EntityType;
use Symfony\Component\Form\AbstractType;
use Symfony\Component\Form\Extension\Core\Type\FileType;
use Symfony\Component\Form\Extension\Core\Type\SubmitType;
use Symfony\Component\Form\FormBuilderInterface;
use Symfony\Component\OptionsResolver\OptionsResolver;
use Symfony\Component\Validator\Constraints\File;

final class NoteType extends AbstractType
{
    public function buildForm(FormBuilderInterface $builder, array $options): void
    {
        $builder
            ->add('product', EntityType::class, [
                'class' => Product::class,
                'choice_label' => 'name',
                'placeholder' => 'note.choose',
                'label' => 'note.product',
            ])
            // Its type and length come from Doctrine's metadata.
            ->add('text', null, ['label' => 'note.text'])
            ->add('picture', FileType::class, [
                'label' => 'note.picture',
                'mapped' => false,
                'required' => false,
                'constraints' => [new File(maxSize: '64k', mimeTypes: ['image/png'])],
            ])
            ->add('send', SubmitType::class, ['label' => 'note.send']);
    }

    public function configureOptions(OptionsResolver $resolver): void
    {
        $resolver->setDefaults(['data_class' => Note::class]);
    }
}
